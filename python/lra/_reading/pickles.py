"""Plain data in pickles: arrays, lists, numbers and texts. Nothing else that one names is called."""

from __future__ import annotations

import io
import pickle
import resource
from typing import Any, BinaryIO

from .errors import ReadError


class _PlainUnpickler(pickle.Unpickler):
    _KNOWN = frozenset(
        {
            *(("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")),
            *(
                (f"numpy.{core}.multiarray", name)
                for core in ("core", "_core")
                for name in ("_reconstruct", "scalar")
            ),
            *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("__builtin__", "bytes"):  # Python 3's empty bytes in protocol 2
            return bytes
        if (module, name) not in self._KNOWN:
            raise pickle.UnpicklingError(
                f"the pickle names '{module} {name}', which is not NumPy's array or a plain value"
            )
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def load_pickle(file: BinaryIO, encoding: str = "ASCII") -> Any:
    """The object of a pickle. Raises whatever a damaged one makes Python raise."""
    return _PlainUnpickler(file, encoding=encoding).load()


def limit_memory() -> None:
    """Keeps a hostile pickle from filling the machine: this process may take 8 GiB of addresses."""
    limit = 8 << 30
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def _plain(value: Any) -> Any:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def cifar_batch(content: bytes, name: str) -> tuple[dict[str, Any], bytes]:
    """The texts and labels of a pickled batch of CIFAR-10 or of its batches.meta, and the colors.

    Python 2 or 3 wrote it, with keys of str or bytes. Raises ReadError for anything else.
    """
    import numpy as np

    expected = "a dictionary with labels and data, as in cifar-10-python.tar.gz"
    try:
        found = load_pickle(io.BytesIO(content), "latin-1")
    except Exception as error:  # a damaged pickle raises anything
        text = " ".join(str(error).split())[:200] or type(error).__name__
        raise ReadError(name, f"is not a pickle that can be read: {text}", expected) from None
    if not isinstance(found, dict):
        raise ReadError(name, f"holds {type(found).__name__}", expected)
    batch = {_plain(key): value for key, value in found.items()}
    texts = {
        key: [str(_plain(text)) for text in batch[key]]
        for key in ("filenames", "label_names")
        if isinstance(batch.get(key), list)
    }
    label = batch.get("batch_label")
    done: dict[str, Any] = {**texts, "batch_label": _plain(label) if label else ""}
    if "label_names" in batch and "data" not in batch:
        return done, b""
    for key in ("labels", "data"):
        if key not in batch:
            raise ReadError(name, f"has no {key}", expected)
    data, labels = batch["data"], list(batch["labels"])
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (3072,):
        kind = f"{data.dtype} {list(data.shape)}" if isinstance(data, np.ndarray) else type(data)
        raise ReadError(name, f"data is {kind}", "uint8 [N, 3072]")
    for i, value in enumerate(labels):
        if not isinstance(value, (int, np.integer)) or not 0 <= value <= 9:
            raise ReadError(name, f"label {i} is {value!r}"[:100], "0 to 9")
    if len(labels) != len(data):
        raise ReadError(
            name, f"has {len(labels):,} labels for {len(data):,} images", "one for each"
        )
    done["labels"] = [int(value) for value in labels]
    return done, data.tobytes()
