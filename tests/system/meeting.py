"""Scripts whose ranks meet one another before they go on."""
# What a script for torchrun does first: all meet at the master, which tells each what all brought.
MEET = """
import json, os, signal, socket, sys, time
env = os.environ

def dial(address):
    while True:
        try:
            return socket.create_connection(address, timeout=60)  # clock: a rank in a sandbox, that has hung
        except OSError:
            time.sleep(0.05)  # clock: it does not listen yet, and nothing tells when

def say(*words):
    # In one piece: processes of one rank share its log.
    os.write(1, (" ".join(words) + "\\n").encode())

# None goes on before all have said it.
def meet(master, is_first, size, word, *more):
    if is_first:
        server = socket.create_server(master)
        words, files = [word], []
        while len(files) < size - 1:
            files.append(server.accept()[0].makefile("rw"))
        words += [file.readline().strip() for file in files]
        for file in files:
            print(json.dumps(sorted(words)), file=file, flush=True)
        say("met", *sorted(words), *more)
        assert all(file.readline() == "said\\n" for file in files)
        for file in files:
            print("go on", file=file, flush=True)
        return
    file = dial(master).makefile("rw")
    print(word, file=file, flush=True)
    say("met", *json.loads(file.readline()), *more)
    print("said", file=file, flush=True)
    assert file.readline() == "go on\\n"
"""

TORCH = MEET + """
rank, size = int(env["RANK"]), int(env["WORLD_SIZE"])
assert env["GROUP_RANK"] == env["ROLE_RANK"] == env["RANK"] and env["LOCAL_RANK"] == "0", env
assert env["OMP_NUM_THREADS"] == "1" and env["GLOO_SOCKET_IFNAME"] in [name for _, name in socket.if_nameindex()], env
meet((env["MASTER_ADDR"], int(env["MASTER_PORT"])), rank == 0, size, "%d@%s" % (rank, env["SOUK_ADDRESS"]),
     "restart", env["TORCHELASTIC_RESTART_COUNT"])
"""
