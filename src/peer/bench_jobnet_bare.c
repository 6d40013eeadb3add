#include "peer/bench_jobnet_bare.h"

#include "net/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LENGTH_SIZE = 4, RECEIVE_SIZE = 512 << 10, PACKETS_PER_TURN = 64 };

static int send_all(int fd, const uint8_t *bytes, size_t size, struct error *error)
{
    for (size_t done = 0; done < size;) {
        const ssize_t sent = send(fd, bytes + done, size - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return error_set_errno(error, errno, "send");
        done += (size_t)sent;
    }
    return 0;
}

static int pass_out(int tun_fd, int link_fd, struct error *error)
{
    static uint8_t frame[LENGTH_SIZE + PACKET_ROOM];
    for (int i = 0; i < PACKETS_PER_TURN; i++) {
        const ssize_t got = read(tun_fd, frame + LENGTH_SIZE, PACKET_ROOM);
        if (got <= 0)
            return 0;
        const uint32_t size = (uint32_t)got;
        memcpy(frame, &size, LENGTH_SIZE);
        if (send_all(link_fd, frame, LENGTH_SIZE + size, error) < 0)
            return -1;
    }
    return 0;
}

static int pass_in(int link_fd, int tun_fd, struct error *error)
{
    static uint8_t received[RECEIVE_SIZE];
    static size_t size;
    const ssize_t got = recv(link_fd, received + size, sizeof(received) - size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return error_set(error, ERROR_UNAVAILABLE, "the other end is gone");
    size += (size_t)got;
    size_t done = 0;
    while (size - done >= LENGTH_SIZE) {
        uint32_t length;
        memcpy(&length, received + done, LENGTH_SIZE);
        if (length > PACKET_ROOM)
            return error_set(error, ERROR_CORRUPT, "a packet of %u bytes", length);
        if (size - done - LENGTH_SIZE < length)
            break;
        (void)!write(tun_fd, received + done + LENGTH_SIZE, length); /* lost, if it is not taken */
        done += LENGTH_SIZE + length;
    }
    memmove(received, received + done, size - done);
    size -= done;
    return 0;
}

int bench_jobnet_bare(int tun_fd, int link_fd, struct error *error)
{
    /* Sending waits: the device is not read meanwhile, and its senders are held back. */
    const int flags = fcntl(link_fd, F_GETFL);
    if (flags < 0 || fcntl(link_fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "set up the connection");
    for (;;) {
        struct pollfd waits[] = {{.fd = tun_fd, .events = POLLIN},
                                 {.fd = link_fd, .events = POLLIN}};
        if (poll(waits, 2, -1) < 0 && errno != EINTR)
            return error_set_errno(error, errno, "poll");
        if ((waits[0].revents && pass_out(tun_fd, link_fd, error) < 0) ||
            (waits[1].revents && pass_in(link_fd, tun_fd, error) < 0))
            return -1;
    }
}
