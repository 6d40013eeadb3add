"""Usage that needs no market: help, versions, wrong flags, broken job files.

covers cli/main.c, cli/program.c, cli/command_docs.c, cli/command_job.c, cli/command_model.c
covers cli/command_lend.c, cli/command_serve.c, cli/command_audit.c
"""
import json
import re
import resource
import struct
import subprocess

import pytest
from program import ROOT
from serving import HUNG_S


def commands_of(souk):
    text = souk("--help").stdout
    listed = text.split("Commands:\n")[1].split("\n\n")[0]
    return [re.split(r"\s{2,}", line.strip())[0] for line in listed.splitlines()
            if line.startswith("  ") and not line.startswith("   ")]


def test_version_comes_within_ten_milliseconds(souk):
    assert re.fullmatch(r"souk \d+\.\d+\.\d+ \(link \d+, exchange \d+(, commit [0-9a-f]{12,}(-changed)?)?\)\n",
                        souk("--version").stdout)
    spans = []
    for _ in range(20):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([souk.program, "--version"], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spans.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    # CPU time, and the best of twenty: other work on the machine only ever adds.
    program = open(souk.program, "rb").read()
    if b"__asan_init" not in program and b"__gcov_" not in program:  # both do work of their own
        assert min(spans) < 0.010, spans


def test_every_command_has_help_with_an_example(souk):
    names = commands_of(souk)
    assert {"job submit", "account", "wallet statement", "prices"} <= set(names)
    for name in names:
        text = souk(*name.split(), "--help").stdout
        assert text.startswith(f"Usage: souk {name} [OPTIONS]"), name
        assert "--json" in text and "-h, --help" in text, name
        assert f"Example:\n  " in text and "souk" in text.split("Example:")[1], name
        assert souk("help", *name.split()).stdout == text, name


def test_help_of_a_group_lists_its_verbs(souk):
    text = souk("job", "--help").stdout
    assert "job submit" in text and "job fetch" in text and "wallet" not in text


@pytest.mark.parametrize("arguments, sentence", [
    ([], 'souk: no command given; see "souk --help"\n'),
    (["jb"], 'souk: unknown command "jb"; did you mean "job"?\n'),
    (["job"], 'souk: "job" needs a verb; see "souk job --help"\n'),
    (["job", "sumbit", "x"], 'souk: unknown command "job sumbit"; did you mean "job submit"?\n'),
    (["--json", "prices"], 'souk: "--json" goes after the command, not before it\n'),
    (["job", "list", "--lmit=3"],
     'souk: unknown flag "--lmit"; did you mean "--limit"?\nSee "souk job list --help".\n'),
    (["job", "list", "--limit", "many"],
     'souk: --limit: "many" is not a whole number from 1 to 100000\n'
     'See "souk job list --help".\n'),
    (["job", "list", "--limit"],
     'souk: --limit needs a value (COUNT)\nSee "souk job list --help".\n'),
    (["job", "show"], 'souk: JOB is missing\nSee "souk job show --help".\n'),
    (["job", "show", "1", "2"],
     'souk: unexpected argument "2"\nSee "souk job show --help".\n'),
    (["lend", "--roles", "cook"],
     'souk: --roles: "cook" is not worker or server\nSee "souk lend --help".\n'),
    (["serve", "--tls-cert", "x.pem"],
     'souk: --tls-cert and --tls-key belong together\nSee "souk serve --help".\n'),
    (["serve", "--grant", "-1"], 'souk: --grant: may not be negative\nSee "souk serve --help".\n'),
    (["prices"], 'souk: no market is known; give --server URL, or run: souk account open --server URL '
                 '--name NAME\nSee "souk prices --help".\n'),
    (["prices", "--server", "market.example"],
     'souk: --server: "market.example" is not an address like https://market.example:7600\n'
     'See "souk prices --help".\n'),
    (["prices", "--server", "https://x", "--fingerprint", "12"],
     'souk: --fingerprint: must be 64 lower-case hex digits\nSee "souk prices --help".\n'),
])
def test_wrong_usage_is_one_sentence_and_exit_code_2(souk, arguments, sentence):
    result = souk(*arguments, code=2)
    assert result.stdout == ""
    assert result.stderr == sentence


def test_a_good_job_file_is_shown_whole(souk):
    example = ROOT / "examples" / "fashion-mnist.yaml"
    assert "is a good job file" in souk("job", "validate", example).stdout
    told = souk("job", "validate", "-", stdin="name: x\nrun: echo\nresources: {memory: 2+}\n").stdout
    assert "resources.memory: at least 2.0 GiB is leased, and billed, as 2.0 GiB each" in " ".join(told.split()), told
    assert "resources.memory" not in souk("job", "validate", "-", stdin="name: x\nrun: echo\n").stdout
    job = json.loads(souk("job", "validate", example, "--json").stdout)
    assert job["name"] == "fashion-mnist" and job["num_nodes"] == 3
    assert job["train"]["loss"] == "cross_entropy"
    # What was printed is a job file too.
    again = souk("job", "validate", "-", "--json", stdin=json.dumps(job)).stdout
    assert json.loads(again) == job


@pytest.mark.parametrize("content, place", [
    ("name: x\ntrain: {model: lenet5, data: mnist}\nnum_node: 3\n",
     ':3:1: unknown field "num_node"; did you mean "num_nodes"?'),
    ("name: x\ntrain:\n  model: lenet5\n  data: mnist\n  batch: 0\n",
     ":5:10: train.batch: must be from 1 to 65536"),
    ("name: x\n\ttrain: 1\n", ":2:1: a tab may not indent; use spaces"),
    ("", ":1:1: the file is empty"),
])
def test_a_broken_job_file_is_refused_with_line_and_column(souk, tmp_path, content, place):
    path = tmp_path / "job.yaml"
    path.write_text(content)
    for verb in ("validate", "submit"):
        result = souk("job", verb, path, code=2)
        assert result.stdout == ""
        assert result.stderr.splitlines()[0] == f"souk: {path}{place}"


def test_an_absent_job_file_and_a_large_one_are_refused(souk, tmp_path):
    assert "No such file" in souk("job", "validate", tmp_path / "absent", code=3).stderr
    large = tmp_path / "large.yaml"
    large.write_text("#" * 70000)
    assert "is larger than 65536 bytes" in souk("job", "validate", large, code=2).stderr


def test_the_schema_is_a_json_schema_that_knows_the_example(souk):
    schema = json.loads(souk("job", "schema").stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    job = json.loads(souk("job", "validate", ROOT / "examples" / "fashion-mnist.yaml",
                          "--json").stdout)

    def check(value, rule, place):
        if rule.get("type") == "object":
            assert set(rule["required"]) <= set(value), place
            for key, inner in value.items():
                check(inner, rule["properties"][key], f"{place}.{key}")
        if "pattern" in rule and isinstance(value, str):
            assert re.search(rule["pattern"], value), place
        if "enum" in rule:
            assert value in rule["enum"], place
        if "minimum" in rule:
            assert rule["minimum"] <= value <= rule["maximum"], place

    check(job, schema, "job")


def test_settings_come_from_flag_then_environment_then_file(souk):
    config = souk.home / ".config" / "souk"
    config.mkdir(parents=True)
    (config / "config").write_text("server = http://127.0.0.1:1\n")
    assert "http://127.0.0.1:1:" in souk("prices", code=7).stderr
    souk.variables["SOUK_SERVER"] = "http://127.0.0.1:2"
    assert "http://127.0.0.1:2:" in souk("prices", code=7).stderr
    assert "http://127.0.0.1:3:" in souk("prices", "--server=http://127.0.0.1:3", code=7).stderr
    (config / "config").write_text("servr = x\n")
    assert 'config:1: unknown key "servr"; did you mean "server"?' in souk("prices", code=2).stderr
    (config / "config").write_text("")
    (config / "secrets").write_text("token = x\n")
    (config / "secrets").chmod(0o644)
    assert "chmod 600" in souk("prices", code=5).stderr


def test_completion_scripts_parse_and_complete(souk, tmp_path):
    script = tmp_path / "souk.bash"
    script.write_text(souk("completion", "bash").stdout)

    def complete(*words):
        lines = (f"source {script}; COMP_WORDS=({' '.join(words)}); "
                 f"COMP_CWORD={len(words) - 1}; _souk; echo ${{COMPREPLY[@]}}")
        return subprocess.run(["bash", "-c", lines], capture_output=True, text=True,
                              check=True).stdout.split()

    assert complete("souk", "wal") == ["wallet"]
    assert complete("souk", "job", "su") == ["submit"]
    assert complete("souk", "job", "submit", "--det") == ["--detach"]
    assert complete("souk", "machines", "--mine") == ["--mine"]
    assert "--limit" in complete("souk", "job", "list", "--")
    assert souk("completion", "zsh").stdout.startswith("#compdef souk\n")
    assert "complete -c souk" in souk("completion", "fish").stdout
    assert '"tcsh" is not one of bash, zsh, fish' in souk("completion", "tcsh", code=2).stderr


def test_the_daemon_says_what_the_machine_can_enforce(souk):
    text = souk("lend", "--doctor").stdout
    assert re.search(r"^machine: ", text, re.M) and re.search(r"^sandbox: ", text, re.M)


def test_an_audit_needs_a_market(souk, tmp_path):
    result = souk("audit", "--data", tmp_path / "absent", code=3)
    assert result.stdout == "" and "absent" in result.stderr


def test_the_manual_names_every_command(souk):
    manual = souk("man").stdout
    assert manual.startswith(".TH souk 1")
    for name in commands_of(souk):
        assert f".SS souk {name}\n" in manual


def test_a_model_file_is_inspected(souk, tmp_path):
    header = json.dumps({"__metadata__": {"model": "logistic"},
                         "weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}})
    header += " " * (-len(header) % 8)
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(24))
    shown = json.loads(souk("model", "inspect", path, "--json").stdout)
    assert shown == {"metadata": {"model": "logistic"},
                     "tensors": [{"name": "weight", "shape": [2, 3]}], "parameters": 6}
    assert "weight  2 x 3           6" in souk("model", "inspect", path).stdout
    path.write_bytes(b"nonsense" * 4)
    souk("model", "inspect", path, code=souk_code_of("corrupt", "exhausted"))


def souk_code_of(*names):
    """An exit code that equals any of those named."""
    codes = {"invalid": 2, "exhausted": 6, "corrupt": 8}

    class AnyOf(int):
        def __eq__(self, other):
            return other in [codes[name] for name in names]

        __hash__ = int.__hash__

    return AnyOf(0)


def test_a_full_disk_is_reported(souk):
    with open("/dev/full", "w") as full:
        result = subprocess.run([souk.program, "job", "schema"], env=souk.variables, stdout=full,
                                stderr=subprocess.PIPE, text=True)
    assert result.returncode == 6
    assert result.stderr == "souk: write to standard output: No space left on device\n"


def test_a_reader_that_leaves_is_no_failure(souk):
    process = souk.start("man")
    process.stdout.close()
    assert process.wait(timeout=HUNG_S) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


def test_the_documented_job_file_is_the_example():
    documented = (ROOT / "docs" / "job-file.md").read_text().split("```yaml\n")[1].split("```")[0]
    assert documented == (ROOT / "examples" / "fashion-mnist.yaml").read_text()


def test_wrong_folders_files_and_flags_are_told_in_a_sentence(souk, tmp_path):
    assert "there is no market in" in souk("audit", "--data", tmp_path / "none", code=3).stderr
    assert "is not a model's file" in souk("model", "inspect", ROOT / "README.md", code=8).stderr
    assert 'JOB: "-1" is not a whole number' in souk("job", "show", "-1", code=2).stderr
    wrong = tmp_path / "job.yaml"
    example = (ROOT / "examples" / "fashion-mnist.yaml").read_text()
    wrong.write_text(example.replace("data: fashion-mnist", "data: fashion"))
    refused = souk("job", "validate", wrong, code=2).stderr
    assert re.search(r"job\.yaml:\d+:\d+: train\.data: .*did you mean \"fashion-mnist\"", refused)
    assert json.loads(souk("lend", "--doctor", "--json", "--state-dir", tmp_path / "lend").stdout)
