"""Files of wrong_input.py: small official copies of five tasks, and a user's own data of three kinds."""
import json
import math
import random

CIFAR_FILES = [f"data_batch_{n}" for n in range(1, 6)] + ["test_batch"]
WORDS = "film plot actor scene camera music story ending dialogue cast what a great weak dull funny part of it".split()


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def write_cifar(root):
    """Six official files of twenty images."""
    noise = random.Random(0)
    for name in CIFAR_FILES:
        records = b"".join(bytes([k % 10]) + noise.randbytes(3072) for k in range(20))
        write(root / "cifar-10-batches-bin" / f"{name}.bin", records)


def prose(draw):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randrange(20, 50))).capitalize() + "."


def write_reviews(root):
    """120 reviews in IMDb's layout."""
    draw = random.Random(1)
    for split in ("train", "test"):
        for label in ("neg", "pos"):
            for i in range(30):
                rating = (1 if label == "neg" else 7) + i % 4
                write(root / "aclImdb" / split / label / f"{i}_{rating}.txt", f"{prose(draw)} {label} film")


def write_pairs(root):
    """The three files of Retrieval."""
    number, draw = 0, random.Random(2)
    for split in ("train", "eval", "test"):
        lines = []
        for i in range(30):
            lines.append(f"{i % 2}.0\tP{number}\tP{number + 1}\t{prose(draw)}\t{prose(draw)}")
            number += 2
        write(root / f"new_aan_pairs.{split}.tsv", "\n".join(lines) + "\n")


def values(count, seed, channels=1, length=40):
    """Noisy waves whose frequency is the class, each drawn on its own."""
    draw, rows = random.Random(seed), []
    for k in range(count):
        phase = draw.uniform(0, 6)
        x = [[round(math.sin((.2 + .2 * (k % 2)) * t + phase + 2.5 * c) + draw.gauss(0, .4), 5) for c in range(channels)]
             for t in range(length)]
        rows.append({"values": x if channels > 1 else [v for [v] in x], "label": k % 2})
    return rows


def texts(count, seed):
    draw = random.Random(seed)
    return [{"text": prose(draw) + (" good" if k % 2 else " bad") * (draw.random() < .7), "label": k % 2}
            for k in range(count)]


def tokens(count, seed):
    draw = random.Random(seed)
    return [{"tokens": [1 + draw.randrange(1 + draw.randrange(200)) for _ in range(draw.randrange(20, 40))], "label": k % 2}
            for k in range(count)]


def jsonl(path, rows):
    write(path, "".join(json.dumps(row) + "\n" for row in rows))


def read_tensors(path):
    """name -> (shape, bytes) of a safetensors file of float32, and its metadata."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8:8 + size]), content[8 + size:]
    metadata = header.pop("__metadata__", None)
    return {name: (entry["shape"], data[slice(*entry["data_offsets"])]) for name, entry in header.items()}, metadata


def write_tensors(path, tensors, metadata=None):
    header, offset = ({"__metadata__": metadata} if metadata else {}), 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write(path, len(text).to_bytes(8, "little") + text + b"".join(data for _, data in tensors.values()))
