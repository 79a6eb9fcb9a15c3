"""A file as people have them: 30 columns, semicolons, decimal commas, dates, NULL, postcodes, free text."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

COLUMNS = (
    "pid", "visit", "arrived", "born", "discharged", "postcode", "sex", "cost", "income", "weight", "height", "temp",
    "pulse", "stay", "distance", "score", "smokes", "insured", "consent", "diagnosis", "ward", "marital", "education",
    "country", "referral", "payer", "pain", "month", "letter", "notes",
)  # fmt: skip
LEFT_OUT = ("letter", "notes")
_WORDS = ("patient", "felt", "well", "after", "walking", "home", "with", "mild", "pain", "and", "no", "fever")


def write_messy(path: Path, rows: int = 300, people: int = 120) -> Path:
    """Write the file, in windows-1252."""
    rng = random.Random(11)
    lines = [";".join(COLUMNS)]
    for row in range(rows):
        day = datetime.date(2021, 1, 1) + datetime.timedelta(days=rng.randrange(1400))
        cost = rng.randrange(1000, 2_500_000)
        cells = {
            "pid": str(1000 + rng.randrange(people)),
            "visit": day.strftime("%d.%m.%Y"),
            "arrived": f"{rng.randrange(6, 20):02}:{rng.randrange(60):02}",
            "born": str(day - datetime.timedelta(days=rng.randrange(7000, 30000))),
            "discharged": (day + datetime.timedelta(days=3)).strftime("%d.%m.%Y 10:%M") if row % 7 else "NULL",
            "postcode": rng.choice(["01067", "10115", "80331", "04109", "20095"]),
            "sex": rng.choice(["m", "f", "M", "F"]),
            "cost": f"{cost // 100:,}".replace(",", ".") + f",{cost % 100:02}" if row % 11 else "-",
            "income": f"{rng.randrange(9, 90)}.{rng.randrange(1000):03}" if row % 5 else "NULL",
            "weight": f"{rng.uniform(45, 120):.1f}".replace(".", ","),
            "height": str(rng.randrange(150, 200)),
            "temp": f"{rng.uniform(36, 40):.1f}".replace(".", ",") if row % 13 else "n/a",
            "pulse": str(rng.randrange(50, 120)) if row % 17 else "not taken",
            "stay": str(rng.randrange(1, 30)),
            "distance": f"{rng.expovariate(0.1):.2f}".replace(".", ","),
            "score": str(rng.randrange(-40, 40)),
            "smokes": rng.choice(["ja", "nein"]),
            "insured": rng.choice(["0", "1"]),
            "consent": rng.choice(["true", "false", "NULL"]),
            "diagnosis": rng.choice(["A01.1", "B20", "C34.9", "E11"]),
            "ward": rng.choice(["Köln", "Süd", "Nord"]),
            "marital": rng.choice(["single", "married", "NULL"]),
            "education": rng.choice(["1", "2", "3", "other"]),
            "country": rng.choice(["DE", "AT", "CH", "NA"]),
            "referral": rng.choice(["GP", '"GP; urgent"', "self"]),
            "payer": rng.choice(["AOK", "TK", "none"]),
            "pain": rng.choice(["0", "1", "2", "3"]),
            "month": day.strftime("%m/%Y"),
            "letter": f"L-{row}",
            "notes": " ".join(rng.choices(_WORDS, k=6)) + f" {row}",
        }
        lines.append(";".join(cells[name] for name in COLUMNS))
    path.write_bytes("\r\n".join(lines).encode("windows-1252"))
    return path
