"""What the program says about itself: help, slips of the fingers, the manual page, completions, and
output that cannot be written. Run by cli_test.py."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

from case import check
from server import clean_environment

COMMANDS = ("serve", "check-config", "health", "backup", "inspect", "export", "import", "bench",
            "completion", "help", "version")
READ_SECONDS_MAX = 30


def flags_of(case, command):
    """The flags that the command's help lists, and what each calls its value."""
    status, output, errors = case.run(command, "--help")
    check(status == 0 and errors == "", errors)
    return dict(re.findall(r"^  (--[a-z-]+)(?: (\S+?))?(?:, -h)?$", output, re.MULTILINE))


def a_bare_call_says_what_it_is_and_what_to_do_first(case):
    status, output, errors = case.run()
    check(status == 2 and errors == "", errors)
    check("Amazon SQS" in output and "  stanchion serve\n" in output, output)
    for command in COMMANDS:
        check(re.search(rf"^  {command} +[A-Z]", output, re.MULTILINE), f"{command}: {output}")
    check(case.run("help") == (0, output, "") and case.run("--help") == (0, output, ""), "help")


def help_of_a_command_is_the_same_either_way_and_fits_the_terminal(case):
    for command in COMMANDS:
        status, output, errors = case.run("help", command)
        check(status == 0 and errors == "", errors)
        check(case.run(command, "--help")[1] == case.run(command, "-h")[1] == output, command)
        wide = [line for line in output.splitlines() if len(line) > 90]
        check(not wide and f"Usage: stanchion {command}" in output, wide)


def wrong_commands_get_a_suggestion(case):
    for typed, meant in (("serv", "serve"), ("srve", "serve"), ("ins", "inspect"),
                         ("backpu", "backup"), ("config", "check-config"), ("Health", "health")):
        for arguments in ([typed], ["help", typed]):
            status, output, errors = case.run(*arguments)
            check(status == 2 and output == "", output)
            check(errors == f'stanchion: there is no command "{typed}"; did you mean {meant}?\n',
                  errors)
    status, _, errors = case.run("foo")
    check(status == 2 and "known are serve, check-config" in errors, errors)


def wrong_flags_get_a_suggestion(case):
    for arguments, words in (
            (["serve", "--lisen", "x"], "serve: there is no flag --lisen; did you mean --listen?"),
            (["serve", "--lisen=x"], "serve: there is no flag --lisen; did you mean --listen?"),
            (["serve", "--certificate", "x"], "did you mean --tls-certificate?"),
            (["inspect", "--to", "x"], "inspect: there is no flag --to here; it is one of backup"),
            (["bench", "--conections", "5"], "bench: there is no flag --conections; did you mean "
                                             "--connections?"),
            (["--data", "x", "serve"], "--data goes after its command: stanchion serve --data"),
            (["--data", "x"], "--data goes after its command: stanchion serve --data"),
            (["inspect", "a", "b"], 'inspect: "b" is one argument too many'),
            (["inspect"], "inspect: DIR is required"),
            (["inspect", "--name", "orders"], "inspect: which log of the fleet?"),
            (["inspect", "a", "--shard", "1"], "inspect: DIR is not for --shard"),
            (["inspect", "--control", "--shard", "1"], "inspect: --shard and --control are two"),
            (["inspect", "--control", "--messages"], "inspect: --messages is for a data directory"),
            (["inspect", "--shard", "1"], "which fleet? Give --name NAME"),
            (["health", "--url"], "health: --url needs a value"),
            (["serve", "--listen", "a", "--listen", "b"], "serve: --listen is given more than once"),
            (["serve", "--strict=maybe"], '--strict: "maybe" is neither true nor false'),
            (["export", "--ca", "x", "--no-verify"], "export: --ca excludes --no-verify"),
            (["completion", "tcsh"], '"tcsh" is not one of bash, zsh, fish')):
        status, output, errors = case.run(*arguments)
        check(status == 2 and output == "" and words in errors, f"{arguments}: {errors}")


def what_was_typed_is_shown_without_harm(case):
    for garbage in (b"\xff\xfe\x01\x1b[2J", b"--\xff\x1b[31m", b"x" * 100_000, b"--" + b"y" * 100_000,
                    "--naïveté".encode(), b"-", b"--", b"=", b"--="):
        for arguments in ([garbage], [b"serve", garbage], [b"help", garbage]):
            done = subprocess.run([os.fsencode(case.binary), *arguments], capture_output=True,
                                  timeout=60, cwd=case.directory, env=clean_environment(
                                      {"STANCHION_THREADS": "none, so that nothing starts"}))
            check(done.returncode in (0, 2), (arguments, done))
            check(len(done.stderr) < 2000, len(done.stderr))
            done.stderr.decode()
            check(not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", done.stderr), done.stderr)


def output_that_cannot_be_written_is_no_success(case):
    data = str(case.directory / "d")
    with case.serve("--data", data, "--threads", "1", "--listen", "127.0.0.1:0"):
        pass
    for arguments in (["help"], ["version"], ["--version"], ["serve", "--print-config"],
                      ["inspect", data], ["inspect", "--json", data], ["completion", "bash"],
                      ["help", "--man"]):
        with open("/dev/full", "w", encoding="utf8") as full:
            done = subprocess.run([case.binary, *arguments], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60, check=False, cwd=case.directory,
                                  env=clean_environment(None))
        check(done.returncode == 1 and done.stderr == "stanchion: cannot write to standard output: "
              "No space left on device\n", (arguments, done))
        # Neither a closed standard output nor a closed standard error is a reason to abort.
        for closed in (">&-", "2>&-", ">&- 2>&-"):
            shell = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", case.binary, *arguments],
                                   capture_output=True, timeout=60, check=False,
                                   cwd=case.directory, env=clean_environment(None))
            check(shell.returncode == (0 if closed == "2>&-" else 1), (arguments, closed, shell))
    for arguments, status in ((["inspect", "nowhere"], 1), (["serve", "--threads", "x"], 2),
                              (["check-config", "nowhere"], 2), (["foo"], 2), (["serve", "-x"], 2)):
        shell = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", case.binary, *arguments],
                               capture_output=True, timeout=60, check=False, cwd=case.directory,
                               env=clean_environment(None))
        check(shell.returncode == status, (arguments, shell))
    piped = subprocess.run(["sh", "-c", '"$0" help | head -1', case.binary], capture_output=True,
                           text=True, timeout=60, check=True)
    check(piped.stdout.startswith("Stanchion: ") and piped.stderr == "", piped)


def a_server_whose_output_is_closed_writes_it_nowhere_and_goes_on(case):
    path, data = case.directory / "socket", case.directory / "d"
    for closed in (">&-", ">&- 2>&-", ">/dev/full", "<&- >&- 2>&-"):
        server = subprocess.Popen(["sh", "-c", f'exec "$@" {closed}', "sh", case.binary, "serve",
                                   "--data", str(data), "--threads", "1", "--unix-socket",
                                   str(path)], cwd=case.directory, env=clean_environment(None))
        end = time.time() + READ_SECONDS_MAX
        while time.time() < end and case.run("health", "--url", f"unix:{path}")[0] != 0:
            check(server.poll() is None, f"{closed}: ended with {server.returncode}")
        server.terminate()
        check(server.wait(READ_SECONDS_MAX) == 0, f"{closed}: ended with {server.returncode}")
        for file in data.rglob("*"):
            check(not file.is_file() or "·".encode() not in file.read_bytes(), file)
        status, _, errors = case.run("inspect", str(data))
        check(status == 0, errors)


def the_version_says_what_was_built(case):
    status, output, _ = case.run("version")
    check(status == 0, output)
    first, *details = output.splitlines()
    check(re.fullmatch(r"stanchion \d+\.\d+\.\d+", first), first)
    check(case.run("--version")[1] == first + "\n", first)
    check([line.split()[0] for line in details] ==
          ["commit", "compiler", "RocksDB", "OpenSSL", "allocator"], details)
    check(all(len(line.split()) > 1 for line in details), details)


def nothing_is_coloured(case):
    for environment in ({}, {"NO_COLOR": "1"}, {"TERM": "xterm-256color", "CLICOLOR_FORCE": "1"}):
        _, output, _ = case.run("help", environment=environment)
        check("\x1b" not in output, output)


# The manual page and the completions know what the program knows.

def the_manual_page_has_every_command_and_flag(case):
    status, page, errors = case.run("help", "--man")
    check(status == 0 and errors == "", errors)
    check(page.startswith(".TH STANCHION 1 "), page[:80])
    for command in COMMANDS:
        check(f".SS {command}".replace("-", "\\-") in page, command)
        for flag in flags_of(case, command):
            check(flag == "--help" or f"\\fB{flag}\\fR".replace("-", "\\-") in page, flag)
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, text=True,
                              capture_output=True, check=False)
        check(done.returncode == 0 and done.stderr == "", done.stderr)


def completed(case, shell, typed):
    """What the shell itself offers as completions of this line."""
    script = case.directory / f"completion.{shell}"
    if not script.exists():
        script.write_text(case.run("completion", shell)[1])
    if shell == "fish":
        done = subprocess.run(["fish", "--no-config", "-c",
                               f'source {script}; complete -C "{typed}"'], capture_output=True,
                              text=True, check=True, cwd=case.directory)
        return [line.split("\t")[0] for line in done.stdout.splitlines()]
    words = typed.split(" ")
    done = subprocess.run(["bash", "--norc", "-c", f"""
        compopt() {{ :; }}
        source {script}
        COMP_WORDS=({' '.join(repr(word) for word in words)}) COMP_CWORD={len(words) - 1}
        _stanchion
        printf '%s\\n' "${{COMPREPLY[@]}}" """], capture_output=True, text=True, check=True,
        cwd=case.directory)
    check(done.stderr == "", done.stderr)
    return done.stdout.split("\n")[:-1]


def shells_offer_every_command_flag_and_choice(case):
    (case.directory / "folder").mkdir()
    (case.directory / "file").write_text("")
    for shell in ("bash", "fish"):
        if not shutil.which(shell):
            continue
        offered = completed(case, shell, "stanchion ")
        check(set(COMMANDS) <= set(offered), f"{shell}: {offered}")
        for command in COMMANDS:
            offered = completed(case, shell, f"stanchion {command} --")
            flags = flags_of(case, command)
            check(set(flags) <= {word.rstrip("=") for word in offered}, f"{shell} {command}")
            for flag, value in flags.items():
                if "|" in value:
                    offered = completed(case, shell, f"stanchion {command} {flag} ")
                    check(sorted(offered) == sorted(value.split("|")), f"{shell} {flag}: {offered}")
        for typed, some, others in (("serve --config f", "file", []),
                                    ("serve --data f", "folder", ["file"]),
                                    ("inspect f", "folder", ["file"]),
                                    ("check-config f", "file", []),
                                    ("completion z", "zsh", ["bash"]), ("help ser", "serve", [])):
            offered = [word.rstrip("/") for word in completed(case, shell, "stanchion " + typed)]
            check(some in offered and not set(others) & set(offered), f"{shell} {typed}: {offered}")


def a_real_zsh_completes(case):
    if not shutil.which("zsh"):
        return
    script = case.directory / "_stanchion"
    script.write_text(case.run("completion", "zsh")[1])
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**clean_environment(None), "TERM": "dumb",
                                                "HOME": str(case.directory)})
    said = b""

    def type_in(text, expected):
        nonlocal said
        os.write(terminal, text.encode())
        end = time.time() + READ_SECONDS_MAX
        while expected.encode() not in said:
            ready, _, _ = select.select([terminal], [], [], max(0, end - time.time()))
            check(ready, f"{expected} is not in {said.decode(errors='replace')}")
            said += os.read(terminal, 4096)
        said = said.split(expected.encode(), 1)[1]

    try:
        # The terminal echoes what is typed, so the expected text is written differently there.
        type_in("unsetopt zle_bracketed_paste 2>/dev/null; PS1=; autoload -U compinit; compinit -u -D; "
                f"fpath=({case.directory} $fpath); source {script}; "
                "stanchion() { print -r -- \"g\"ot:$@: }; print loa\"\"ded\n", "loaded")
        type_in("stanchion insp\t--fac\t\n", "got:inspect --facts:")
        type_in("stanchion bench --workload wak\t\n", "got:bench --workload wake-up:")
        type_in("stanchion serve --log-level deb\t\n", "got:serve --log-level debug:")
        type_in("stanchion completion fi\t\n", "got:completion fish:")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
