"""Images, sounds, texts and numbers that belong together, by name."""

import csv
import io

from tfr_assets.samples.digits import digits
from tfr_assets.samples.tones import tones
from tfr_assets.samples.topics import topics


def mixed_files() -> dict[str, bytes]:
    """Returns a digit, a tone, a topic and a row of numbers for each topic, by path below the folder.

    images/NAME.png · sounds/NAME.wav · captions/NAME.txt · numbers.csv with columns name, digit, frequency, words
    """
    files: dict[str, bytes] = {}
    table = io.StringIO()
    rows = csv.writer(table)
    rows.writerow(["name", "digit", "frequency", "words"])
    things = zip(topics().items(), digits(), tones(), strict=False)  # of each as many as there are topics
    for (name, text), (_, digit, image), (_, frequency, _, sound) in things:
        files |= {f"images/{name}.png": image, f"sounds/{name}.wav": sound, f"captions/{name}.txt": text.encode()}
        rows.writerow([name, digit, f"{frequency:.3f}", len(text.split())])
    return files | {"numbers.csv": table.getvalue().encode()}
