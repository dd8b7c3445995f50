"""Data that a crash of the machine could lose, followed through a trace of system calls (strace -f -y).

Data of a file are at risk from a write to the next fsync; a name from its creation or renaming to the
fsync of its folder. A rename moves everything below with it.
"""
import os
import re

CALLS = ("openat,open,creat,write,pwrite64,writev,fsync,fdatasync,syncfs,rename,renameat,renameat2,link,linkat,"
         "symlink,symlinkat,mkdir,mkdirat,ftruncate")
LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)(?:<(.*)>)?")
FD = re.compile(r"^(?:\d+|AT_FDCWD)<([^>]*)>")


def whole_lines(text):
    """Lines with calls that another thread interrupted put together again."""
    begun = {}
    for line in text.splitlines():
        process = line.split(" ", 1)[0]
        if line.endswith(" <unfinished ...>"):
            begun[process] = line.removesuffix(" <unfinished ...>")
        elif " resumed>" in line:
            yield begun.pop(process) + line.split(" resumed>", 1)[1]
        else:
            yield line


class Storage:
    """Names and data below `root` that a crash could still take."""

    def __init__(self, root):
        self.root = str(root)
        self.names = {str(path) for path in root.rglob("*")} | {self.root}
        self.open_data, self.open_names = set(), set()
        self.renames = []  # (from, to, what was at risk below `from`, all that was at risk)
        self.flushed, self.written = set(), set()

    def below(self, path):
        return [p for p in (*self.open_data, *self.open_names) if p == path or p.startswith(path + "/")]

    def created(self, path):
        if path.startswith(self.root + "/") and path not in self.names:
            self.names.add(path)
            self.open_names.add(path)

    def wrote(self, path):
        if path.startswith(self.root + "/"):
            self.open_data.add(path)
            self.written.add(path)

    def synced(self, path):
        self.open_data.discard(path)
        self.flushed.add(path)
        self.open_names = {name for name in self.open_names if os.path.dirname(name) != path}

    def synced_all(self):
        self.open_data, self.open_names = set(), set()

    def renamed(self, old, new, exchange):
        if not new.startswith(self.root + "/"):
            return
        # The name of what is renamed is not at risk in its new place by what it was before.
        risk = [path for path in self.below(old) if path != old or path in self.open_data]
        self.renames.append((old, new, risk, [*self.open_data, *self.open_names]))

        def moved(path):
            for a, b in ((old, new), (new, old)) if exchange else ((old, new),):
                if path == a or path.startswith(a + "/"):
                    return b + path[len(a):]
            return path
        if not exchange:
            gone = {p for p in self.names if p == new or p.startswith(new + "/")}
            self.names -= gone
            self.open_data -= gone
            self.open_names -= gone
        self.names = {moved(path) for path in self.names}
        self.open_data = {moved(path) for path in self.open_data}
        self.open_names = {moved(path) for path in self.open_names} | {new}
        self.written = {moved(path) for path in self.written}

    def at_risk(self, path):
        return path in self.open_data or path in self.open_names


def strings(text):
    """The quoted arguments, joined to the folder of the descriptor before them."""
    found = []
    for folder, name in re.findall(r'(?:(?:\d+|AT_FDCWD)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"', text):
        found.append(os.path.normpath(os.path.join(folder or os.getcwd(), name)))
    return found


def follow(text, storage):
    """Applies every successful call of the trace; returns how many."""
    count = 0
    for line in whole_lines(text):
        match = LINE.match(line)
        if not match or int(match[3]) < 0:
            continue
        call, arguments = match[1], match[2]
        fd = FD.match(arguments)
        count += 1
        if call in ("open", "openat", "creat"):
            if "O_CREAT" in arguments or call == "creat":
                storage.created(strings(arguments)[0])
            if "O_TRUNC" in arguments:
                storage.wrote(strings(arguments)[0])
        elif call in ("write", "pwrite64", "writev", "ftruncate"):
            storage.wrote(fd[1] if fd else "")
        elif call in ("fsync", "fdatasync"):
            storage.synced(fd[1])
        elif call == "syncfs":
            storage.synced_all()
        elif call.startswith("rename"):
            storage.renamed(*strings(arguments)[:2], "RENAME_EXCHANGE" in arguments)
        elif call.startswith(("symlink", "link")):
            storage.created(strings(arguments)[1])
        else:
            storage.created(strings(arguments)[0])
    return count
