"""What git leaves in place of a file that git-LFS keeps elsewhere: a few lines of text, which name the file."""

_BEGIN = b"version https://git-lfs.github.com/spec/v1\n"
_NEXT = (b"oid sha256:", b"ext-")
LOOK = 64
"""Bytes of a file that are enough to know a pointer."""
IS_POINTER = "is a git-LFS pointer, not the file itself: run `git lfs pull` where it was cloned"


def is_pointer(begin: bytes) -> bool:
    """Whether a file that begins with these bytes (`LOOK` are enough) is a git-LFS pointer."""
    return begin.startswith(_BEGIN) and begin[len(_BEGIN) :].startswith(_NEXT)
