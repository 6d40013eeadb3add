/*
 * Store fault: a file system for SQLite that fails when a test says so.
 *
 * It passes everything to the usual one, except that after `calls_before` more calls of the chosen
 * kind, `calls_failing` calls of it fail. Programs do not link it.
 *
 *     struct store_fault fault = {0};
 *     store_fault_install(&fault, "disk-full");
 *     options.file_system = "disk-full";
 *     ... store_open ...
 *     fault.kind = STORE_FAULT_DISK_FULL;  fault.calls_failing = UINT32_MAX;
 *
 * One thread: the one that uses the store.
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

enum store_fault_kind {
    STORE_FAULT_NONE,
    STORE_FAULT_DISK_FULL,   /* a write finds no space */
    STORE_FAULT_WRITE_ERROR, /* a write fails */
    STORE_FAULT_SYNC_ERROR,  /* a sync fails, with the data perhaps on disk */
};

struct store_fault {
    enum store_fault_kind kind;
    uint32_t calls_before;
    uint32_t calls_failing;
    uint32_t write_count; /* calls seen, failing ones too */
    uint32_t sync_count;
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
};

/* The struct and the name live until store_fault_remove. */
void store_fault_install(struct store_fault *fault, const char *name);
void store_fault_remove(struct store_fault *fault);
