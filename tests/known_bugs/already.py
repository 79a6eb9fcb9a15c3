"""Published bugs that are planted elsewhere in the tests, and those that no plugin can have here."""

#: The bug, who had it, and the name under which `test_bugs_seen_in_outputs.py` or `test_bugs_unseen_in_outputs.py` in
#: `tests/verify/planted_bugs` plants it.
PLANTED = [
    ("a partial sum with half the noise", "CheckDP, `badpartialsum`", "halved noise, claimed"),
    ("candidates or bins from the data", "reprosyn 38", "candidates that depend on the data"),
    ("counts and sums that wrap round", "Casacuberta et al. 2022", "counts in int16, widened too late"),
    ("sums rounded in floating point", "Casacuberta et al. 2022; Google 126", "sums in float16"),
    ("a clamped geometric mechanism", "SmartNoise Core 319", "noise that is cut off"),
    ("a local sensitivity as the scale", "many", "half the noise on large counts, density and all"),
    ("noise from a generator that is not secure", "Garfinkel and Leclerc 2020", "noise of another generator"),
    ("one seed for all noise", "Garfinkel and Leclerc 2020", "noise of a known seed"),
    ("one step more than is accounted", "SmartNoise Synth, pull request 424", "a release made twice"),
    ("state that a query keeps", "PINQ; Haeberlen, Pierce and Narayan 2011", "rows that a query keeps"),
    ("training that stops on a private loss", "many", "an early stop on the data"),
    ("an error that tells of the data", "Haeberlen, Pierce and Narayan 2011", "a failure on the data"),
    ("a wrong sign in a Gumbel key", "the Serenade paper", "a wrong sign in a selection key"),
    ("parts by row position", "a published DP forest", "parts by row position"),
    ("parallel composition under replace-one", "many", "parallel as the largest part under replace-one"),
]

#: What no plugin can have here, or what is not seen, with the reason.
OUT_OF_REACH = [
    (
        "amplification by the rate times epsilon; a wrong formula of an odometer",
        "SmartNoise SDK 621 and others",
        "These are bugs of an accountant. The built-in accountants are compared with exact enumeration.",
    ),
    (
        "time that depends on the rows",
        "Haeberlen, Pierce and Narayan 2011; Jin et al. 2022",
        "How long a run takes is not examined.",
    ),
]
