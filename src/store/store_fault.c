#include "store/store_fault.h"

#include "base/assert.h"

#include <stdbool.h>

struct fault_file {
    sqlite3_file file; /* first: SQLite hands this back */
    struct store_fault *fault;
    sqlite3_file *real; /* lies behind this struct, in the room SQLite gave for both */
};

static struct fault_file *fault_file_of(sqlite3_file *file)
{
    return (struct fault_file *)(void *)file;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return fault_file_of(file)->real;
}

static bool fails_now(struct store_fault *fault)
{
    if (fault->calls_before > 0) {
        fault->calls_before--;
        return false;
    }
    if (fault->calls_failing == 0)
        return false;
    if (fault->calls_failing != UINT32_MAX)
        fault->calls_failing--;
    return true;
}

static int file_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
    struct store_fault *fault = fault_file_of(file)->fault;
    fault->write_count++;
    if (fault->kind == STORE_FAULT_DISK_FULL && fails_now(fault))
        return SQLITE_FULL;
    if (fault->kind == STORE_FAULT_WRITE_ERROR && fails_now(fault))
        return SQLITE_IOERR_WRITE;
    return real_of(file)->pMethods->xWrite(real_of(file), data, size, offset);
}

static int file_sync(sqlite3_file *file, int flags)
{
    struct store_fault *fault = fault_file_of(file)->fault;
    fault->sync_count++;
    if (fault->kind == STORE_FAULT_SYNC_ERROR && fails_now(fault))
        return SQLITE_IOERR_FSYNC;
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int file_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int file_read(sqlite3_file *file, void *data, int size, sqlite3_int64 offset)
{
    return real_of(file)->pMethods->xRead(real_of(file), data, size, offset);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int file_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int file_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int file_check_lock(sqlite3_file *file, int *result)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), result);
}

static int file_control(sqlite3_file *file, int operation, void *argument)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static int file_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int file_characteristics(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int file_shm_map(sqlite3_file *file, int region, int size, int extend,
                        void volatile **memory)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), region, size, extend, memory);
}

static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int file_shm_unmap(sqlite3_file *file, int is_deleted)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), is_deleted);
}

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                      int *out_flags)
{
    static const sqlite3_io_methods methods = {
        .iVersion = 2,
        .xClose = file_close,
        .xRead = file_read,
        .xWrite = file_write,
        .xTruncate = file_truncate,
        .xSync = file_sync,
        .xFileSize = file_size,
        .xLock = file_lock,
        .xUnlock = file_unlock,
        .xCheckReservedLock = file_check_lock,
        .xFileControl = file_control,
        .xSectorSize = file_sector_size,
        .xDeviceCharacteristics = file_characteristics,
        .xShmMap = file_shm_map,
        .xShmLock = file_shm_lock,
        .xShmBarrier = file_shm_barrier,
        .xShmUnmap = file_shm_unmap,
    };
    struct store_fault *fault = vfs->pAppData;
    struct fault_file *self = fault_file_of(file);
    self->fault = fault;
    self->real = (sqlite3_file *)(void *)(self + 1);
    const int result = fault->real->xOpen(fault->real, name, self->real, flags, out_flags);
    /* Methods tell SQLite that there is something to close. */
    self->file.pMethods = self->real->pMethods ? &methods : NULL;
    return result;
}

void store_fault_install(struct store_fault *fault, const char *name)
{
    fault->real = sqlite3_vfs_find(NULL);
    ASSERT(fault->real);
    fault->vfs = *fault->real;
    fault->vfs.zName = name;
    fault->vfs.pNext = NULL;
    fault->vfs.pAppData = fault;
    fault->vfs.szOsFile = (int)sizeof(struct fault_file) + fault->real->szOsFile;
    fault->vfs.xOpen = fault_open;
    const int result = sqlite3_vfs_register(&fault->vfs, /* is default= */ 0);
    ASSERT(result == SQLITE_OK);
}

void store_fault_remove(struct store_fault *fault)
{
    const int result = sqlite3_vfs_unregister(&fault->vfs);
    ASSERT(result == SQLITE_OK);
}
