"""What goes wrong with functions while a job is trained on them: it goes on without losing a batch, or ends with its best model,
the bill right and nothing left running.

covers function/driver.c, function/host.c
"""
import json
import os

import pytest
from functions import RECORDS, Host, instances, wait_for, with_few_records, write_job
from serving import is_built_with


@pytest.fixture
def souk(souk):
    return with_few_records(souk)


def on(host, *options, memory=128):
    return (*options, "--url", host.ready["url"], "--store", host.ready["store"], "--memory", memory, "--json")


def assert_billed(result):
    assert result["spent_micro"] == sum(epoch["cost_micro"] for epoch in result["epochs"]) > 0


def test_functions_that_are_replaced_when_their_time_is_up_lose_no_batch(souk, tmp_path):
    # One call gets all batches of Fashion-MNIST, far more than fits its time limit on any machine. Each call does a part and
    # leaves the rest to the next.
    del souk.variables["SOUK_FUNCTION_TRAIN_DATASET_DIR"]
    job = write_job(tmp_path, batch=10, epochs=1)
    job.write_text(job.read_text().replace("logistic", "lenet5"))
    # The address sanitizer's program takes four times as long. Memory brings its part of a core.
    share, memory = ("0.2", 512) if is_built_with("libasan") else ("0.05", 128)
    with Host(souk, "--cpus", share) as host:
        result = json.loads(souk("function", "train", job, "-o", tmp_path / "model", *on(host, memory=memory), "--functions", 1,
                                 "--span", 6000, "--timeout", "3s", "--keep-updates").stdout)
    assert result["end"] == "epochs" and result["samples"] == 60_000
    assert result["updates"] - 1 == result["calls"] - result["failures"] > 1
    assert_billed(result)


def test_functions_without_the_memory_end_the_job(souk, tmp_path):
    del souk.variables["SOUK_FUNCTION_TRAIN_DATASET_DIR"]
    job = write_job(tmp_path, batch=30000, epochs=1)  # half of all records at once
    with Host(souk, "--keep-warm", "1s") as host:
        result = json.loads(souk("function", "train", job, "-o", tmp_path / "model", *on(host), "--functions", 2,
                                 code=1).stdout)
        assert wait_for(lambda: not instances(host))
    assert result["end"] == "failed" and "128 MiB are too little: the model and a batch take" in result["reason"]
    assert result["failures"] >= 5 and result["samples"] == 0
    assert_billed(result)
    assert (tmp_path / "model/model.safetensors").exists()


def test_a_host_that_has_room_for_fewer_is_asked_again(souk, tmp_path):
    with Host(souk, "--concurrency", "1") as host:
        result = json.loads(souk("function", "train", write_job(tmp_path, epochs=1), "-o", tmp_path / "model", *on(host),
                                 "--functions", 4).stdout)
    assert result["throttled"] > 0 and result["failures"] == 0
    assert result["end"] == "epochs" and result["samples"] == RECORDS
    assert_billed(result)


def break_store(models):
    """Nothing can be put there any more, whatever is being put just now."""
    while True:
        try:
            os.rename(models, f"{models}.away")
            models.touch(exist_ok=False)
            return
        except OSError:
            continue


def test_a_store_that_breaks_half_way_ends_the_job_with_its_best_model(souk, tmp_path):
    with Host(souk, "--keep-warm", "1s", "--cpus", "0.2") as host:
        process = souk.start("function", "train", write_job(tmp_path, epochs=50), "-o", tmp_path / "model",
                             *on(host, "--functions", 3))
        name = None
        for line in process.stderr:
            if line.startswith("Job "):
                name = line.split()[1]
            if line.startswith("epoch 1:"):
                break
        break_store(host.path_of("models", name))
        out, _ = process.communicate()
        assert wait_for(lambda: not instances(host))
    result = json.loads(out)
    assert process.returncode == 1 and result["end"] == "failed" and "Not a directory" in result["reason"]
    assert 1 <= result["epochs_done"] < 50 and result["test_accuracy"] > 0.5
    assert result["test_loss"] == min(epoch["test_loss"] for epoch in result["epochs"])
    assert_billed(result)
    assert (tmp_path / "model/model.safetensors").exists()
