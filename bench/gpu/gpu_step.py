"""What bench/gpu.py runs by hand and as a job: a torch program on the GPU. Its first line is the time it began at."""
import time

began = time.time()
import json  # noqa: E402 -- the time before anything is imported is what is measured
import sys  # noqa: E402

import torch  # noqa: E402

WARM_STEPS = 30
count = torch.cuda.device_count()
told = {"began": began, "gpus": count, "torch": torch.__version__}
if count:
    steps, width, batch = int(sys.argv[1]), 4096, 1024
    told["gpu"] = torch.cuda.get_device_name(0)
    torch.manual_seed(1)
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = [(torch.randn(batch, width).pin_memory(), torch.randint(10, (batch,)).pin_memory()) for _ in range(4)]
    for step in range(WARM_STEPS + steps):
        if step == WARM_STEPS:
            torch.cuda.synchronize()
            at = time.perf_counter()
        rows, labels = (part.cuda(non_blocking=True) for part in loader[step % len(loader)])
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    told["steps_per_s"] = steps / (time.perf_counter() - at)
    told["loss"] = loss.item()
print(json.dumps(told), flush=True)
