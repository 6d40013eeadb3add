"""Frames of zstd, by the library itself: Python has none of its own yet."""
import ctypes

ZSTD = ctypes.CDLL("libzstd.so.1")
for function in (ZSTD.ZSTD_compress, ZSTD.ZSTD_decompress):
    function.restype = ctypes.c_size_t
ZSTD.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong


def packed(data):
    room = ctypes.create_string_buffer(len(data) + 1024)
    size = ZSTD.ZSTD_compress(room, ctypes.c_size_t(len(room)), data, ctypes.c_size_t(len(data)), 3)
    return room.raw[:size]


def unpacked(frame, size=None):
    size = size or ZSTD.ZSTD_getFrameContentSize(frame, ctypes.c_size_t(len(frame)))
    assert size <= 4 << 20, size
    room = ctypes.create_string_buffer(size)
    assert ZSTD.ZSTD_decompress(room, ctypes.c_size_t(size), frame, ctypes.c_size_t(len(frame))) == size
    return room.raw
