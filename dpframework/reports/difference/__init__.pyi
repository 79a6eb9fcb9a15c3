from .base import Change as Change, Difference as Difference, Topic as Topic
from .between import difference as difference
from .marks import Mark as Mark
from .merged import Merged as Merged
from .sides import Side as Side
