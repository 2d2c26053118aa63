"""CPU seconds of each test (phases separately), processes below included."""
import os, pytest
T = os.sysconf("SC_CLK_TCK")
def tree():
    kids = {}
    stats = {}
    for p in os.listdir("/proc"):
        if p.isdigit():
            try:
                with open(f"/proc/{p}/stat") as h: s = h.read()
            except OSError: continue
            f = s[s.rindex(")")+2:].split()
            kids.setdefault(int(f[1]), []).append(int(p))
            stats[int(p)] = sum(map(int, f[11:15]))
    def total(p): return stats.get(p,0) + sum(map(total, kids.get(p, [])))
    return total(os.getpid())/T
seen = {}
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    a = tree(); yield; seen[item.nodeid, "setup"] = tree() - a
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    a = tree(); yield; seen[item.nodeid, "call"] = tree() - a
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    a = tree(); yield; seen[item.nodeid, "down"] = tree() - a
def pytest_terminal_summary(terminalreporter):
    files = {}
    for (n, _), c in seen.items(): files[n.split("::")[0]] = files.get(n.split("::")[0], 0) + c
    w = terminalreporter.write_line
    w(f"CPU {tree():.1f}")
    for n, c in sorted(files.items(), key=lambda x: -x[1]): w(f"CPUFILE {c:8.2f} {n}")
    for (n, ph), c in sorted(seen.items(), key=lambda x: -x[1])[:int(os.environ.get("CPUTOP", 60))]: w(f"CPUTEST {c:8.2f} {ph:5} {n}")
