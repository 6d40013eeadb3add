/*
 * Memory: gives back what a process that has become idle does not need to keep resident.
 */
#pragma once

/*
 * Returns free heap pages and lets go of the program's and its libraries' code pages, which are
 * unchanged copies of files: what runs again is mapped again from the page cache. Cheap, but not
 * for inner loops. Does nothing where /proc is not there.
 */
void memory_trim(void);

/* Bytes of this process in memory (VmRSS); 0 where /proc is not there. */
long long memory_resident_bytes(void);
