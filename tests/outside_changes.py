"""Changes that another program makes in a workspace, one of each kind, and the workspace they are made for."""

import os
import shutil
import socket

LATER_NS = 1_700_000_000_000_000_000


def begin(app):
    """Begin a session, and wait until its manifest is written and hashed."""
    session_id = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    (workspace,) = app.services.workspaces.values()
    workspace.manifest.wait(session_id, 60)
    return session_id


def end(app, session_id):
    """What the end of a session says was changed without Kaiza, and how much was compared."""
    output = app.call("end_session", {"session_id": session_id}).output
    return [(each["path"], each["change"]) for each in output["ungoverned"]], output["manifest"]


def fill_project(root):
    """Put something of each kind into a workspace."""
    (root / ".gitignore").write_text("node_modules/\n*.log\n")
    for name in ("src/deep/er", "node_modules/left", "empty", "many", ".git/objects", ".git/refs"):
        (root / name).mkdir(parents=True)
    for number in range(6):
        (root / f"src/f{number}.py").write_text(f"number = {number}\n")
    (root / "src/deep/er/x.txt").write_text("x\n")
    (root / "src/deep/y.txt").write_text("y\n")
    (root / "node_modules/left/index.js").write_text("1;\n")
    (root / "node_modules/left/pad.js").write_text("2;\n")
    (root / "node_modules/left/.npmrc").write_text("token=1\n")
    (root / "build.log").write_text("built\n")
    (root / ".env").write_text("SECRET=1\n")
    (root / "Readme.md").write_text("# Readme\n")
    (root / "none").write_bytes(b"")
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    os.link(root / "src/f5.py", root / "src/linked.py")
    (root / "link").symlink_to("src/f0.py")
    (root / "circle").symlink_to(".")
    os.mkfifo(root / "pipe")
    for number in range(20):
        (root / f"many/{number:04d}").write_bytes(b"%d" % number)


def append(path):
    path.write_bytes(path.read_bytes() + b"more\n")


def rewrite_in_place(path, content):
    """Other bytes of the same length, with the times put back."""
    status = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def rewrite_beside(root):
    path = root / "src/f0.py"
    status = path.stat()
    (root / "src/tmp").write_text("number = X\n")
    os.utime(root / "src/tmp", ns=(status.st_atime_ns, status.st_mtime_ns))
    (root / "src/tmp").rename(path)


def swap_directory_for_link(root):
    shutil.rmtree(root / "src/deep")
    (root / "src/deep").symlink_to("er")


def bind_socket(root):
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        try:
            os.chdir(root)  # the path of a socket is short
            server.bind("src/s")
        finally:
            os.chdir(here)


def replace_by(path, make):
    path.unlink()
    make(path)


def swap_names(root):
    (root / "src/f0.py").rename(root / "src/t")
    (root / "src/f1.py").rename(root / "src/f0.py")
    (root / "src/t").rename(root / "src/f1.py")


CHANGES = {
    "nothing": lambda _root: None,
    "edit": lambda root: (root / "src/f0.py").write_text("number = 99\n"),
    "append": lambda root: append(root / "src/f0.py"),
    "truncate": lambda root: (root / "src/f0.py").write_bytes(b""),
    "write into an empty file": lambda root: (root / "none").write_text("some\n"),
    "edit three": lambda root: [(root / f"src/f{n}.py").write_text("same\n") for n in range(3)],
    "create": lambda root: (root / "src/new.py").write_text("new = 1\n"),
    "create an empty file": lambda root: (root / "src/new.py").touch(),
    "create at the root": lambda root: (root / "new").write_text("new\n"),
    "create in a new directory": lambda root: ((root / "a/b").mkdir(parents=True), (root / "a/b/c").write_text("c\n")),
    "create an empty directory": lambda root: (root / "src/void").mkdir(),
    "create nested empty directories": lambda root: (root / "v/o/i/d").mkdir(parents=True),
    "delete": lambda root: (root / "src/f1.py").unlink(),
    "delete a directory": lambda root: shutil.rmtree(root / "src/deep"),
    "delete an empty directory": lambda root: (root / "empty").rmdir(),
    "delete everything": lambda root: [shutil.rmtree(root / name) for name in ("src", "many", "node_modules", "empty")],
    "rename": lambda root: (root / "src/f1.py").rename(root / "src/g1.py"),
    "rename into another directory": lambda root: (root / "src/f1.py").rename(root / "src/deep/er/f1.py"),
    "rename a directory": lambda root: (root / "src/deep").rename(root / "src/deeper"),
    "rename an empty directory": lambda root: (root / "empty").rename(root / "void"),
    "rename an empty file": lambda root: (root / "none").rename(root / "nothing"),
    "rename and edit": lambda root: ((root / "src/f1.py").rename(root / "g"), (root / "g").write_text("other = 1\n")),
    "rename and chmod": lambda root: ((root / "src/f1.py").rename(root / "g"), (root / "g").chmod(0o700)),
    "rename over a file": lambda root: (root / "src/f1.py").rename(root / "src/f2.py"),
    "swap two names": swap_names,
    "copy": lambda root: shutil.copy2(root / "src/f1.py", root / "src/copy.py"),
    "copy and delete": lambda root: (shutil.copy(root / "src/f1.py", root / "z.py"), (root / "src/f1.py").unlink()),
    "change the case": lambda root: (root / "Readme.md").rename(root / "README.md"),
    "chmod": lambda root: (root / "src/f1.py").chmod(0o755),
    "chmod a directory": lambda root: (root / "src/deep").chmod(0o700),
    "set the user id": lambda root: (root / "src/f1.py").chmod(0o4755),
    "edit and chmod": lambda root: ((root / "src/f1.py").write_text("1\n"), (root / "src/f1.py").chmod(0o600)),
    "same size and time put back": lambda root: rewrite_in_place(root / "src/f0.py", b"number = 8\n"),
    "same size and time by another file": rewrite_beside,
    "touch": lambda root: os.utime(root / "src/f0.py", ns=(LATER_NS, LATER_NS)),
    "change and change back": lambda root: [(root / "src/f0.py").write_text(f"number = {n}\n") for n in (7, 0)],
    "delete and create again": lambda root: ((root / "none").unlink(), (root / "none").touch()),
    "chmod and chmod back": lambda root: [(root / "src/f0.py").chmod(mode) for mode in (0o777, 0o644)],
    "edit through a hard link": lambda root: append(root / "src/linked.py"),
    "another hard link": lambda root: os.link(root / "src/f5.py", root / "src/third.py"),
    "swap a link": lambda root: replace_by(root / "link", lambda path: path.symlink_to("src/f1.py")),
    "link to a directory": lambda root: replace_by(root / "link", lambda path: path.symlink_to("src")),
    "link out of the workspace": lambda root: replace_by(root / "link", lambda path: path.symlink_to("/etc/passwd")),
    "a file becomes a link": lambda root: replace_by(root / "src/f0.py", lambda path: path.symlink_to("f1.py")),
    "a link becomes a file": lambda root: replace_by(root / "link", lambda path: path.write_text("number = 0\n")),
    "a file becomes a directory": lambda root: replace_by(root / "src/f0.py", lambda path: path.mkdir()),
    "a file becomes a full directory": lambda root: replace_by(
        root / "src/f0.py", lambda path: (path.mkdir(), (path / "in").write_text("in\n"))
    ),
    "a file becomes a FIFO": lambda root: replace_by(root / "src/f0.py", os.mkfifo),
    "a FIFO becomes a file": lambda root: replace_by(root / "pipe", lambda path: path.write_text("p\n")),
    "a directory becomes a file": lambda root: (shutil.rmtree(root / "src/deep"), (root / "src/deep").write_text("f")),
    "a directory becomes a link": swap_directory_for_link,
    "a new FIFO": lambda root: os.mkfifo(root / "src/pipe"),
    "a new socket": bind_socket,
    "delete the FIFO": lambda root: (root / "pipe").unlink(),
    "edit an ignored file": lambda root: (root / "node_modules/left/index.js").write_text("99;\n"),
    "create in an ignored directory": lambda root: (root / "node_modules/left/new.js").write_text("n\n"),
    "delete an ignored directory": lambda root: shutil.rmtree(root / "node_modules/left"),
    "same size and time put back, ignored": lambda root: rewrite_in_place(root / "build.log", b"bUilt\n"),
    "chmod an ignored file": lambda root: (root / "build.log").chmod(0o600),
    "rename an ignored file": lambda root: (root / "build.log").rename(root / "old.log"),
    "edit a secret": lambda root: (root / ".env").write_text("SECRET=2\n"),
    "chmod a secret and chmod back": lambda root: [(root / ".env").chmod(mode) for mode in (0o600, 0o644)],
    "chmod a secret": lambda root: (root / ".env").chmod(0o600),
    "write a secret again": lambda root: replace_by(root / ".env", lambda path: path.write_text("SECRET=1\n")),
    "rename a secret": lambda root: (root / ".env").rename(root / "src/.env.local"),
    "a secret with another name and content": lambda root: (
        (root / ".env").rename(root / "plain"),
        (root / "plain").write_text("x\n"),
    ),
    "chmod an ignored secret and chmod back": lambda root: [
        (root / "node_modules/left/.npmrc").chmod(mode) for mode in (0o600, 0o644)
    ],
    "edit an ignored secret with times put back": lambda root: rewrite_in_place(
        root / "node_modules/left/.npmrc", b"token=2\n"
    ),
    "no longer ignored": lambda root: (root / ".gitignore").write_text(""),
    "names with controls": lambda root: [(root / f"a{chr(n)}\u202e\u2028b").write_text("c") for n in (1, 10, 27)],
    "several chunks of a directory": lambda root: [(root / f"many/{n:04d}").unlink() for n in range(0, 20, 3)],
    "a new directory of several chunks": lambda root: (
        (root / "more").mkdir(),
        [(root / f"more/{n}").touch() for n in range(50)],
    ),
    "version control": lambda root: (root / ".git/HEAD").write_text("ref: refs/heads/other\n"),
    "a new plan": lambda root: (root / "plans/PLAN-9.md").write_text("---\nkaiza_plan: 1\n"),
    "the settings": lambda root: (root / "kaiza.toml").write_text(""),
}
