"""Generated Pathfinder images against those of the public generator, and of the archive itself.

Per size and difficulty: a table of statistics with the difference of the means in standard errors,
then two classifiers (logistic regression and a network of 32 hidden units, on the statistics and
8 x 8 averaged pixels, five-fold cross-validation) that try to tell the two sets apart and must stay
at chance. As a control, the same network must tell images of another difficulty from them. The
archive's own images are compared by the table alone: a dozen are too few for a classifier to fail on.

Reads LRA_TEST_DATA: pathfinder{32,64,128,256}/curv_* and real_lra_release/. Skipped without it.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

DATA = pathlib.Path(os.environ.get("LRA_TEST_DATA", ""))
LEVELS = {"easy": "curv_baseline", "intermediate": "curv_contour_length_9",
          "hard": "curv_contour_length_14"}
SETS = [("pathfinder", 32, "easy"), ("pathfinder", 32, "intermediate"), ("pathfinder", 32, "hard"),
        ("pathfinder64", 64, "hard"), ("pathx", 128, "hard"), ("pathfinder256", 256, "hard")]
HALF = {32: 1, 64: 1, 128: 2, 256: 3}  # of the square that a marker disc holds
MOST_ERRORS = 4.5  # of about 100 figures none should be farther off
failures = []


def lra(*arguments):
    subprocess.run([os.environ["LRA_PROGRAM"], "data", *map(str, arguments), "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)


def read_images(folder, size):
    """Pixels [N, size, size] and labels [N] of a prepared dataset, all splits."""
    pixels, labels = [], []
    for shard in sorted(pathlib.Path(folder).glob("*")):
        content = shard.read_bytes()
        if content[:8] != b"LRASHARD":
            continue
        count, _, tokens = np.frombuffer(content, "<u8", 3, 16)
        labels.append(np.frombuffer(content, "<i4", int(count), 64))
        pixels.append(np.frombuffer(content[-int(tokens):], np.uint8).reshape(-1, size, size))
    return np.concatenate(pixels), np.concatenate(labels)


def marker_distance(image, half):
    size = image.shape[0]
    darkest = image.copy()
    for dy in range(-half, half):
        for dx in range(-half, half):
            darkest = np.minimum(darkest, np.roll(image, (-dy, -dx), (0, 1)))
    y0, x0 = np.unravel_index(darkest.argmax(), darkest.shape)
    ys, xs = np.mgrid[:size, :size]
    darkest = np.where(np.maximum(abs(ys - y0), abs(xs - x0)) <= half + 1, 0, darkest)
    y1, x1 = np.unravel_index(darkest.argmax(), darkest.shape)
    return np.hypot(y0 - y1, x0 - x1)


def statistics(images, size):
    """[N, S] and their names."""
    flat = images.reshape(len(images), -1).astype(np.float64)
    lit = images > 32
    pairs = (lit[:, 1:] & lit[:, :-1]).sum((1, 2)) + (lit[:, :, 1:] & lit[:, :, :-1]).sum((1, 2))
    blocks = (lit[:, 1:, 1:] & lit[:, 1:, :-1] & lit[:, :-1, 1:] & lit[:, :-1, :-1]).sum((1, 2))
    ys, xs = np.mgrid[:size, :size]
    away = np.hypot(ys - (size - 1) / 2, xs - (size - 1) / 2).ravel()
    columns = {"mean": flat.mean(1), "variance": flat.var(1), "share > 0": (flat > 0).mean(1),
               "share > 32": lit.mean((1, 2)),
               "pieces less holes": lit.sum((1, 2)) - pairs + blocks,
               "mean distance from the centre": (flat * away).sum(1) / flat.sum(1),
               "marker distance": np.array([marker_distance(i, HALF[size]) for i in images])}
    edges = np.linspace(0, 256, 11)
    for low, high in zip(edges[1:-1], edges[2:]):
        columns[f"gray {low:.0f} to {high:.0f}"] = ((flat >= low) & (flat < high)).mean(1)
    return np.stack(list(columns.values()), 1), list(columns)


def print_table(title, ours, theirs, names):
    print(f"\n{title}: {len(ours)} generated, {len(theirs)} reference images")
    print(f"  {'':32}{'ours':>10} {'+-':>8}{'theirs':>11} {'+-':>8}  standard errors")
    for s, name in enumerate(names):
        a, b = ours[:, s], theirs[:, s]
        error = np.sqrt(a.var() / len(a) + max(a.var(), b.var()) / len(b)) or 1e-9
        off = (a.mean() - b.mean()) / error
        print(f"  {name:32}{a.mean():10.4f} {a.std():8.4f}"
              f"{b.mean():11.4f} {b.std():8.4f}{off:9.2f}")
        if abs(off) > MOST_ERRORS:
            failures.append(f"{title}: {name} is {off:.1f} standard errors off")


def features(images, size):
    pooled = images.reshape(len(images), 8, size // 8, 8, size // 8).mean((2, 4))
    return np.concatenate([statistics(images, size)[0], pooled.reshape(len(images), -1)], 1)


def train(x, y, hidden, rng, steps=300, decay=0.01):
    """Adam on the cross entropy; hidden = 0 is logistic regression. Returns the classifier."""
    width, w = hidden or x.shape[1], []
    if hidden:
        w = [rng.normal(0, x.shape[1] ** -0.5, (x.shape[1], hidden)), np.zeros(hidden)]
    w += [rng.normal(0, 0.1 * width ** -0.5, width), np.zeros(())]
    m, v = [np.zeros_like(p) for p in w], [np.zeros_like(p) for p in w]

    def score(inputs):
        rows = np.maximum(inputs @ w[0] + w[1], 0) if hidden else inputs
        return rows, rows @ w[-2] + w[-1]

    for step in range(1, steps + 1):
        rows, z = score(x)
        delta = (1 / (1 + np.exp(-z)) - y) / len(y)
        grads = [rows.T @ delta, delta.sum()]
        if hidden:
            back = np.outer(delta, w[2]) * (rows > 0)
            grads = [x.T @ back, back.sum(0)] + grads
        for i, g in enumerate(grads):
            g = g + decay * w[i]
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.99 * v[i] + 0.01 * g * g
            rate = 0.01 * (1 - 0.99 ** step) ** 0.5 / (1 - 0.9 ** step)
            w[i] = w[i] - rate * m[i] / (np.sqrt(v[i]) + 1e-8)
    return lambda inputs: score(inputs)[1] > 0


def separability(ours, theirs, size, hidden):
    """Cross-validated accuracy of telling equally many of both apart, over up to six sets of ours.

    One set alone scatters by more than the binomial law says, since the folds share their training
    images.
    """
    count = min(len(ours), len(theirs))
    rng = np.random.default_rng(0)
    sets = min(6, len(ours) // count)
    reference = features(theirs[:count], size)
    right = 0
    for k in range(sets):
        x = np.concatenate([features(ours[k * count:(k + 1) * count], size), reference])
        y = np.repeat([0.0, 1.0], count)
        order = rng.permutation(2 * count)
        x, y = x[order], y[order]
        for fold in range(5):
            held = np.arange(2 * count) % 5 == fold
            mean, scale = x[~held].mean(0), x[~held].std(0) + 1e-9
            guess = train((x[~held] - mean) / scale, y[~held], hidden, rng)
            right += (guess((x[held] - mean) / scale) == y[held]).sum()
    return right / (2 * count * sets), 2 * count


def compare(task, size, level, root):
    folder = DATA / f"pathfinder{size}" / LEVELS[level]
    difficulty = ["--set", f"task.difficulty={level}"]
    lra("import", task, folder, "--out", root / f"{task}-{level}", *difficulty)
    theirs, _ = read_images(root / f"{task}-{level}", size)
    lra("make", task, "--train", 2000 if size < 256 else 500, "--val", 1, "--test", 1, "--seed", 1,
        "--out", root / f"{task}-{level}-ours", *difficulty)
    ours, labels = read_images(root / f"{task}-{level}-ours", size)
    title = f"{size} x {size}, {level}"
    names = statistics(ours[:1], size)[1]
    print_table(title, statistics(ours, size)[0], statistics(theirs, size)[0], names)
    off = abs(labels.mean() - 0.5) * 2 * len(labels) ** 0.5
    print(f"  {'share of label 1':32}{labels.mean():10.4f}")
    if off > MOST_ERRORS:
        failures.append(f"{title}: label 1 is {labels.mean():.3f} of all")
    for name, hidden in (("logistic regression", 0), ("network", 32)):
        accuracy, count = separability(ours, theirs, size, hidden)
        limit = 0.5 + 3.5 * 0.5 / count ** 0.5
        print(f"  {name} tells them apart in {accuracy:.1%} of {count}; chance ends at {limit:.1%}")
        if accuracy > limit:
            failures.append(f"{title}: {name} tells the images apart, {accuracy:.1%}")
    return ours, theirs


def compare_archive(ours, task, size, root):
    images = sorted((DATA / "real_lra_release" / f"pathfinder{size}").glob("**/*.png"))
    level = root / "real" / f"pathfinder{size}" / LEVELS["hard"]
    (level / "imgs/0").mkdir(parents=True)
    (level / "metadata").mkdir()
    lines = ""
    for i, image in enumerate(images):
        (level / f"imgs/0/sample_{i}.png").write_bytes(image.read_bytes())
        lines += f"imgs/0 sample_{i}.png {i} 0 1.8 14 4.666666666666667 5 1.5 2 1\n"
    (level / "metadata/0.npy").write_text(lines)
    lra("import", task, level, "--out", root / f"{task}-real")
    theirs, _ = read_images(root / f"{task}-real", size)
    names = statistics(ours[:1], size)[1]
    print_table(f"{size} x {size}, the archive itself", statistics(ours, size)[0],
                statistics(theirs, size)[0], names)


def main():
    if not (DATA / "pathfinder32").is_dir():
        print("LRA_TEST_DATA names no folder with pathfinder32/")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        drawn = {(task, level): compare(task, size, level, root) for task, size, level in SETS}
        for task, size in (("pathfinder64", 64), ("pathx", 128)):
            compare_archive(drawn[task, "hard"][0], task, size, root)
        accuracy, count = separability(drawn["pathfinder", "easy"][0],
                                       drawn["pathfinder", "intermediate"][1], 32, 32)
        print(f"\ncontrol: easy from intermediate images: {accuracy:.1%} of {count}")
        if accuracy < 0.7:
            failures.append(f"the classifier is blind: {accuracy:.1%} on different images")
    if failures:
        sys.exit("FAILED: " + "; ".join(failures))
    print("ok: generated images cannot be told from the reference")


main()
