"""The hazards of NIST SP 800-226, each with the question of a dossier that answers it.

These are the 24 hazards of the public draft of December 2023, in the order of its sections and in our own words. Four
of them cannot happen in a study of this framework. A dossier lists them under topics out of scope and says why.
"""

from __future__ import annotations

from typing import final

import attrs


@final
@attrs.frozen
class Hazard:
    """A hazard that the publication warns of, with the question that answers it.

    Attributes
    ----------
    section
        The number of the section that warns of the hazard.
    text
        The hazard in words.
    topic
        The title of the question that answers the hazard, or of the topic out of scope.
    in_scope
        Whether a question answers the hazard.
    """

    section: str
    text: str
    topic: str
    in_scope: bool = True


#: The hazards, in the publication's order.
HAZARDS: tuple[Hazard, ...] = (
    Hazard("2.2", "a large epsilon may protect nobody", "epsilon"),
    Hazard("2.3", "with a delta, privacy may fail altogether", "variant and delta"),
    Hazard("2.4", "the unit is smaller than what people expect to be protected", "unit of privacy"),
    Hazard("2.4", "an event or a row is protected, but not a person with several of them", "unit of privacy"),
    Hazard("2.5", "guarantees at different deltas are compared", "variant and delta"),
    Hazard("2.5", "guarantees for different units are compared", "unit of privacy"),
    Hazard("2.5", "a large delta makes a converted epsilon look small", "variant and delta"),
    Hazard("2.6", "other releases about the same people have no noise", "other releases"),
    Hazard("3", "algorithms are written anew, and not tested", "correctness"),
    Hazard("3.3.1", "noise hits small groups more, and can add to injustice", "bias and small groups"),
    Hazard("3.3.2", "numbers are adjusted to look right, which distorts them", "bias and small groups"),
    Hazard("3.3.3", "results are off on average", "bias and small groups"),
    Hazard("3.4.1", "several rows of a person need more noise", "contributions"),
    Hazard("3.4.1", "the list of groups shows who is in the table", "bounds and domains"),
    Hazard("3.5", "a trained model remembers the rows", "post-processing"),
    Hazard("3.6", "synthetic data is made without privacy", "synthetic data without privacy", in_scope=False),
    Hazard("3.6", "synthetic data of neural networks is poor", "neural networks", in_scope=False),
    Hazard("3.7", "in texts and images it is unclear whose data each part is", "unstructured data", in_scope=False),
    Hazard("4.1", "strangers send queries at any time", "queries by strangers at any time", in_scope=False),
    Hazard("4.2", "people who must be trusted do not deserve it", "trust and actors"),
    Hazard("4.3", "rounding, timing or errors give rows away", "side channels"),
    Hazard("4.4", "the rows are stolen", "security and access"),
    Hazard("4.4", "the wrong people may read the rows", "security and access"),
    Hazard("4.5", "more is collected than is needed", "data collection"),
)
