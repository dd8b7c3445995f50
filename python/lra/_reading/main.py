"""The process that the program starts: a request on standard input, JSON lines on standard output."""

from __future__ import annotations

import errno
import json
import os
import traceback
from typing import Any

from .errors import ReadError


def _say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Reads what `request` names; what is large goes into its file descriptor `out`."""
    with os.fdopen(request["out"], "wb", 1 << 20, closefd=False) as out:
        if "pickle" in request:
            from .pickles import cifar_batch, limit_memory

            limit_memory()
            with os.fdopen(request["in"], "rb", closefd=False) as file:
                done, content = cifar_batch(file.read(), request["pickle"])
            out.write(content)
            return done
        from .reading import Reading

        reading = Reading(request["settings"], out, lambda rows: _say(rows=rows))
        return reading.run(request["files"])


def main(request: dict[str, Any]) -> None:
    try:
        _say(done=answer(request))
    except ReadError as error:
        _say(error=error.parts)
    except BrokenPipeError:
        os._exit(1)  # the program ended first
    except MemoryError:
        _say(error={"what": "the reader ran out of memory", "advice": "use a larger machine"})
    except ImportError as error:
        _say(lacks=error.name or str(error))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
            _say(crash=traceback.format_exc())
            return
        what = f"the temporary file of the import cannot be written ({error.strerror})"
        _say(error={"what": what, "advice": "free space, or choose another --out", "io": True})
    except Exception:
        _say(crash=traceback.format_exc())
