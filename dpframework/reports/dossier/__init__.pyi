from .deployment_registry_entry import registry_entry as registry_entry, registry_text as registry_text
from .dossier_content import Answer as Answer, Basis as Basis, Dossier as Dossier, dossier as dossier
from .dossier_formats import dossier_file as dossier_file, dossier_sections as dossier_sections
from .owner_statements import Statements as Statements, statements_template as statements_template
