/*
 * Worker: the program inside a lease's sandbox: `souk worker`, hidden, started by the daemon.
 *
 * It speaks to the daemon over a control socket (runtime/child_message.h, fd 3), takes its lease
 * from CONFIG, and is a worker or a parameter server by the lease's role:
 *
 *     worker   steps on /data/train-images and -labels; pushes to the server over its stream
 *     server   holds the model; measures it on /data/test-images and -labels; writes
 *              model.safetensors, card.json and checkpoint to /lease/out
 *
 * SIGTERM and STOP end it in good order: a worker pushes what it has, a server saves the model.
 */
#pragma once

/* argv[0] is the command's name. Options: --control-fd N, --data FOLDER, --out FOLDER; unset, 3,
 * /data and /lease/out; --functions N: a worker's steps are made by so many functions (caller.h),
 * whose store is --store FOLDER; unset, /functions. Returns the process's exit status. */
int worker_main(int argc, char **argv);

/* `souk image-unpack ARCHIVE BYTES_MAX FILES_MAX`, hidden likewise: an image (blob/image.h) into
 * the working folder. What goes wrong is said on standard output. */
int image_unpack_main(int argc, char **argv);

/* `souk packages-install ARCHIVE BYTES_MAX`, hidden likewise: the archive's wheels, unpacked into
 * the working folder, into a new virtual environment in /packages. What is done, and what pip says,
 * is told on standard error; in one line what went wrong, on standard output. */
int packages_install_main(int argc, char **argv);
/* `souk packages-list ARCHIVE BYTES_MAX` and `souk packages-fetch`, before it: what the archive
 * lists of an index. */
int packages_list_main(int argc, char **argv);
int packages_fetch_main(int argc, char **argv);

/* `souk import-read NAME file|folder BYTES_MAX FILES_MAX`, `souk import-mount NAME` and
 * `souk import-look NAME whole|start`, hidden likewise: what the market reads for a borrower
 * (import_main.c). What goes wrong is said on standard output. */
int import_read_main(int argc, char **argv);
int import_mount_main(int argc, char **argv);
int import_look_main(int argc, char **argv);

/* `souk rank-launch HOST COMMAND...`, hidden likewise: for a framework's launcher inside a sandbox.
 */
int rank_launch_main(int argc, char **argv);
