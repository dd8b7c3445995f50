"""Archives that no honest person makes. Each case takes the path of a file that an importer reads
and an absolute path outside, and gives the bytes of tar entries or of a whole file."""
import bz2
import gzip
import io
import lzma
import os
import struct
import tarfile
import zlib

BOMB_BYTES = 128 << 20


def header(name, size=0, kind=b"0", link=b"", size_field=None, checksum=None):
    """One ustar header; every field can lie."""
    name = name if isinstance(name, bytes) else name.encode()
    field = size_field if size_field is not None else b"%011o\0" % size
    block = bytearray(name[:100].ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 +
                      field.ljust(12, b"\0") + b"00000000000\0" + b" " * 8 + kind +
                      link[:100].ljust(100, b"\0") + b"ustar\00000")
    block = block.ljust(512, b"\0")
    total = sum(block) if checksum is None else checksum
    block[148:156] = b"%06o\0 " % total
    return bytes(block)


def padded(content):
    """Content in whole blocks."""
    return content + b"\0" * (-len(content) % 512)


def entry(name, content=b"x", **fields):
    """A header with its content."""
    return header(name, len(content), **fields) + padded(content)


def pax(records, name="pax"):
    """An extended header for the next entry; records are bytes."""
    body = b""
    for key, value in records:
        size = len(key) + len(value) + 3
        while len(str(size)) + len(key) + len(value) + 3 != size:
            size = len(str(size)) + len(key) + len(value) + 3
        body += b"%d %s=%s\n" % (size, key, value)
    return header(name, len(body), kind=b"x") + padded(body)


def long_name(name):
    """GNU's long name for the next entry."""
    return header("././@LongLink", len(name) + 1, kind=b"L") + padded(name + b"\0")


def binary_size(value):
    """A size in base 256."""
    return b"\x80" + value.to_bytes(11, "big") if value >= 0 else b"\xff" * 11 + bytes([value & 255])


def gnu_sparse(name, real_size):
    """An old GNU sparse file: one byte, then a hole."""
    block = bytearray(header(name, 512, kind=b"S"))
    block[257:265] = b"ustar  \0"
    struct.pack_into("12s12s", block, 386, b"%011o\0" % 0, b"%011o\0" % 512)
    block[483:495] = binary_size(real_size)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + b"x" * 512


def inner(path, outside):
    """Entries that follow good ones in an archive; the names say what is hostile."""
    raw, out = path.encode(), outside.encode()
    folder = os.path.dirname(path)
    return {
        "climbs out at once": entry("../../../../evil"),
        "climbs out half-way": entry(f"{folder}/../../../../../evil"),
        "climbs out of the file itself": entry(f"{path}/../../../../evil"),
        "absolute name": entry(outside + "/evil"),
        "absolute name in a pax header": pax([(b"path", out + b"/evil")]) + entry(path),
        "climbs out by a long name": long_name(b"../" * 40 + b"evil") + entry(path),
        "symbolic link outside, then a file through it":
            header(folder + "/door", kind=b"2", link=out) + entry(folder + "/door/evil"),
        "symbolic link in place of a file": header(path, kind=b"2", link=b"/etc/passwd"),
        "link in a pax header": pax([(b"linkpath", out)]) + header(path, kind=b"2"),
        "hard link to a file outside": header(path, kind=b"1", link=b"/etc/passwd"),
        "hard link to an entry before": header(folder + "/again", kind=b"1", link=raw),
        "links that name each other": header(folder + "/a", kind=b"2", link=b"b") +
                                      header(folder + "/b", kind=b"2", link=b"a"),
        "character device": header(folder + "/null", kind=b"3"),
        "block device": header(folder + "/disk", kind=b"4"),
        "named pipe": header(folder + "/pipe", kind=b"6"),
        "eight GiB declared, nothing there": header(path, 8 << 30, size_field=b"77777777777\0"),
        "largest size of 64 bits": header(path, size_field=binary_size((1 << 63) - 1)),
        "size of 88 bits": header(path, size_field=binary_size((1 << 87) - 1)),
        "negative size": header(path, size_field=binary_size(-5)),
        "size that is no number": header(path, size_field=b"banana\0") + padded(b"x"),
        "wrong checksum": header(path, 1, checksum=1) + padded(b"x"),
        "pax size of 1e18": pax([(b"size", b"1" + b"0" * 18)]) + header(path, 1) + padded(b"x"),
        "pax header of 2 GiB": header("pax", 2 << 30, kind=b"x"),
        "long name of 2 GiB": header("././@LongLink", 2 << 30, kind=b"L"),
        "long name without end": long_name(b"a/" * 4000 + b"b") + entry(path),
        "line feed in a name": entry(f"{folder}/a\nlra: all is well"),
        "terminal escapes in a name": entry(f"{folder}/a\x1b[2J\x1b]0;x\x07"),
        "zero byte in a pax name": pax([(b"path", raw + b"\0/../../evil")]) + entry(path),
        "name that is not UTF-8": entry(os.fsencode(folder) + b"/\xff\xfe\x80"),
        "no name": entry(""),
        "the same name twice": entry(path) + entry(path),
        "old sparse file of 1 TB": gnu_sparse(path, 1 << 40),
        "pax sparse file of 1 TB":
            pax([(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"),
                 (b"GNU.sparse.realsize", b"1099511627776"), (b"GNU.sparse.name", raw)]) +
            entry(path, b"1\n0\n1\n".ljust(512, b"\0") + b"x"),
        "cut within a file": header(path, 4096) + b"x" * 700,
    }


def zeros_in_gzip(before, count, level=6):
    """gzip of `before` and `count` zeros, made a MiB at a time."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return b"".join([packer.compress(before), *(packer.compress(bytes(1 << 20))
                                               for _ in range(count >> 20)), packer.flush()])


def large_dictionary(tar):
    """xz whose block asks the reader for a dictionary of 1.5 GiB."""
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 16}]
    data = bytearray(lzma.compress(tar, lzma.FORMAT_XZ, lzma.CHECK_NONE, filters=filters))
    size = (data[12] + 1) * 4
    at = data.index(b"\x21\x01", 12) + 2  # the filter's id and the size of its properties
    data[at] = 37
    data[12 + size - 4:12 + size] = struct.pack("<I", zlib.crc32(data[12:12 + size - 4]))
    return bytes(data)


def million_entries(good):
    """Empty folders, a thousand different ones a thousand times."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = b"".join(header(f"d{i}/", kind=b"5") for i in range(1000))
    parts = [packer.compress(good), *(packer.compress(block) for _ in range(1000))]
    return b"".join(parts) + packer.compress(bytes(1024)) + packer.flush()


def whole_files(good, path):
    """Files of their own: bombs, a million entries, and what is no archive. Functions that make
    them, since some take a second."""
    bomb = good + header(path, BOMB_BYTES)
    ignored = good + header("README", BOMB_BYTES)
    packed = gzip.compress(good, mtime=0)
    packed_whole = gzip.compress(good + bytes(1024), mtime=0)
    return {
        "gzip bomb": lambda: zeros_in_gzip(bomb, BOMB_BYTES),
        "gzip bomb in gzip": lambda: gzip.compress(zeros_in_gzip(bomb, BOMB_BYTES), mtime=0),
        "gzip bomb in a file that is skipped": lambda: zeros_in_gzip(ignored, BOMB_BYTES),
        "bzip2 bomb": lambda: bz2.compress(bomb + bytes(BOMB_BYTES)),
        "xz bomb": lambda: lzma.compress(bomb + bytes(BOMB_BYTES), preset=0),
        "xz with a dictionary of 1.5 GiB": lambda: large_dictionary(good + header(path, 1 << 30)),
        "a million entries": lambda: million_entries(good),
        "cut gzip": lambda: packed[:len(packed) // 2],
        "gzip with a damaged stream": lambda: packed[:40] + bytes(200) + packed[240:],
        "gzip within gzip, thirty times": lambda: nested(good, 30),
        "garbage after the end": lambda: good + bytes(1024) + bytes(range(256)) * 20,
        "a header of zeros": lambda: good + bytes(1024) + good + bytes(1024),
        "no mark of the end": lambda: good,
        "gzip with a wrong checksum": lambda: packed_whole[:-8] + bytes(4) + packed_whole[-4:],
        "text": lambda: b"this is no archive\n" * 100,
        "empty": lambda: b"",
        "zip": lambda: b"PK\x03\x04" + bytes(26) + b"evil",
        "gzip of nothing": lambda: gzip.compress(b"", mtime=0),
    }


def nested(data, times):
    """gzip of gzip of gzip ..."""
    for _ in range(times):
        data = gzip.compress(data, mtime=0)
    return data


def good_tar(files):
    """An honest archive without its end blocks, so that more can follow."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        end = tar.offset
    return buffer.getvalue()[:end]
