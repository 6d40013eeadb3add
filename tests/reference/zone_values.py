#!/usr/bin/env python3
"""Prints src/base/zone_values.h: what Python's zoneinfo says of wall clocks, for zone_test.c.

    tests/reference/zone_values.py > src/base/zone_values.h
"""
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC",
         "Europe/Dublin", "America/Nuuk", "Pacific/Apia"]
YEARS = [1979, 2011, 2024, 2026, 2037, 2038, 2100, 2399]
EPOCH = datetime(1970, 1, 1)


def offset_s(zone, utc_s):
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=utc_s)
    return int(moment.astimezone(zone).utcoffset().total_seconds())


def changes(zone, year):
    """Instants in a year at which the offset changes, found by halving."""
    begin = int((datetime(year, 1, 1) - EPOCH).total_seconds())
    for hour in range(366 * 24):
        low, high = begin + hour * 3600, begin + (hour + 1) * 3600
        if offset_s(zone, low) == offset_s(zone, high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset_s(zone, middle) == offset_s(zone, low) else (low, middle)
        yield high


def instants(zone, wall_s):
    """The first and the last instant at which the clock shows it; in a gap twice its end."""
    wall = EPOCH + timedelta(seconds=wall_s)
    first, last = (wall_s - int(wall.replace(tzinfo=zone, fold=fold).utcoffset().total_seconds())
                   for fold in (0, 1))
    if first <= last:
        return first, last
    low, high = last, first
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset_s(zone, middle) == offset_s(zone, last) else (low, middle)
    return high, high


def main():
    print("/* Made by tests/reference/zone_values.py. */")
    print("static const struct {\n    const char *zone;\n    int64_t utc_s;\n    int64_t offset_s;\n} offsets[] = {")
    walls = []
    for name in ZONES:
        zone = ZoneInfo(name)
        for year in YEARS:
            summer = int((datetime(year, 7, 1, 12) - EPOCH).total_seconds())
            points = [summer]
            walls.append((name, summer))
            for at in changes(zone, year):
                points += [at - 1, at]
                before, after = at + offset_s(zone, at - 1), at + offset_s(zone, at)
                low, high = min(before, after), max(before, after)
                walls += [(name, wall) for wall in (low - 1, low, (low + high) // 2, high - 1, high)]
            for point in points:
                print(f'    {{"{name}", {point}, {offset_s(zone, point)}}},')
    print("};\n\nstatic const struct {\n    const char *zone;\n    int64_t wall_s;\n    int64_t first_s;\n    int64_t last_s;\n} walls[] = {")
    for name, wall in walls:
        first, last = instants(ZoneInfo(name), wall)
        print(f'    {{"{name}", {wall}, {first}, {last}}},')
    print("};")


main()
