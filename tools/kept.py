"""The choice of what a failed test leaves behind."""
import contextlib
import os
import pathlib
import shutil

BYTES_MAX = 8 << 20  # of a file


def keep(folder, kept):
    """Copies what explains a failure: files of ordinary size, no sockets, pipes or links. Some go meanwhile, or are another
    user's."""
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(root, name))]
        for name in files:
            path = pathlib.Path(root, name)
            with contextlib.suppress(OSError):
                if path.is_file() and not path.is_symlink() and path.stat().st_size <= BYTES_MAX:
                    copy = kept / path.relative_to(folder)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, copy)
