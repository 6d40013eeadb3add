"""Reads TensorBoard's event files, as far as scalars go, without its package: every checksum is checked."""
import struct


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    """(number, value) of a protobuf message: bytes, or whole numbers and fixed ones as they are."""
    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value, at

    at = 0
    while at < len(data):
        key, at = varint(at)
        kind = key & 7
        if kind == 0:
            value, at = varint(at)
        elif kind == 2:
            size, at = varint(at)
            value, at = data[at:at + size], at + size
        else:
            size = 8 if kind == 1 else 4
            value, at = struct.unpack("<d" if kind == 1 else "<f", data[at:at + size])[0], at + size
        yield key >> 3, value


def read_scalars(folder):
    """[(tag, step, value), ...] of all files of a folder, in order."""
    scalars = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data, at, first = path.read_bytes(), 0, True
        while at < len(data):
            size, check = struct.unpack("<QI", data[at:at + 12])
            record = data[at + 12:at + 12 + size]
            assert masked(data[at:at + 8]) == check
            assert masked(record) == struct.unpack("<I", data[at + 12 + size:at + 16 + size])[0]
            event = dict(fields(record))
            assert (event.get(3) == b"brain.Event:2") == first
            for number, value in fields(event.get(5, b"")):
                scalar = dict(fields(value))
                scalars.append((scalar[1].decode(), event.get(2, 0), round(scalar[2], 6)))
            at, first = at + 16 + size, False
    return scalars
