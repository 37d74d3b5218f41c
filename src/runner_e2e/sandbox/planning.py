"""From a policy to a plan: looks at the machine once, refuses what must be refused, works out the agent's view."""

from __future__ import annotations

import os

from runner_e2e import kernel
from runner_e2e.sandbox import deputies
from runner_e2e.sandbox.aliases import HardLinks, count_hard_links, mount_aliases
from runner_e2e.sandbox.answers import access, ask, lstat
from runner_e2e.sandbox.facts import beneath, is_link, is_there, observe, read_mounts, same_or_beneath
from runner_e2e.sandbox.plan import Plan, Step
from runner_e2e.sandbox.record import Record
from runner_e2e.sandbox.refusals import refuse, usable
from runner_e2e.sandbox.view import Entry, ancestors, barriers, decides, movable, order, step_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from runner_e2e.errors import LaunchError, Problem
    from runner_e2e.sandbox.facts import PathFact
    from runner_e2e.sandbox.policy import Policy

__all__ = [
    "AGENT_USER",
    "Host",
    "Survey",
    "agent_environment",
    "create_entries",
    "current_directory",
    "make_plan",
    "modes_of",
    "read_host",
    "survey",
]

# Between the ids that distributions give to people and those that they give to services.
AGENT_USER = 61000

_CAP_SETUID, _CAP_SYS_ADMIN = 7, 21
# Below these nothing is given away; of the shared ones, only what lies below them.
_SYSTEM_DIRECTORIES = frozenset(
    {"", "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "usr"}
)
_SHARED_DIRECTORIES = frozenset({"home", "media", "mnt", "opt", "root", "srv", "tmp", "var"})
_MOST_HOME_ENTRIES = 2000
_PROXY_VARIABLES = frozenset({"all_proxy", "ftp_proxy", "http_proxy", "https_proxy", "no_proxy"})


class Host(Record):
    """What the launcher may do on this machine."""

    user: int
    group: int
    capabilities: int
    abi: int
    groups: tuple[int, ...] = ()  # supplementary ones

    @property
    def privileged(self) -> bool:
        """Whether the launcher may mount and change its user."""
        wanted = 1 << _CAP_SYS_ADMIN | 1 << _CAP_SETUID
        return self.capabilities & wanted == wanted


def modes_of(host: Host) -> tuple[str, ...]:
    """The ways to launch from such a host, strongest first."""
    return ("privileged", "bare") if host.privileged else ("user-namespace", "sudo", "bare")


def create_entries(policy: Policy) -> tuple[str, ...]:
    """Makes what a launch may not make itself because its parent is hidden from it; returns what was made."""
    made = []
    for path in (*policy.create, *policy.create_files):
        if is_there(path):
            continue
        try:
            if path in policy.create_files:
                os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            else:
                os.makedirs(path, mode=0o755)
        except OSError as error:
            from runner_e2e.errors import LaunchError

            why, fix = error.strerror or str(error), "make it yourself, or take it out of the policy"
            raise LaunchError(f"{path} could not be created before the launch", why=why, fix=fix) from error
        made.append(path)
    return tuple(made)


def current_directory() -> str:
    """That of this process; raises :class:`LaunchError` where it was removed."""
    try:
        return os.getcwd()
    except OSError as error:
        from runner_e2e.errors import LaunchError

        why = error.strerror or str(error)
        raise LaunchError("the working directory is gone", why=why, fix="start in one that exists") from error


def read_host() -> Host:
    """Asks the kernel."""
    return Host(
        user=os.geteuid(),
        group=os.getegid(),
        capabilities=kernel.effective_capabilities(),
        abi=kernel.landlock_abi(),
        groups=tuple(sorted(set(os.getgroups()) - {os.getegid()})),
    )


class Survey(Record):
    """The paths of a policy as they were found, judged and not refused."""

    hidden: tuple[PathFact, ...]
    absent: tuple[str, ...]
    exposed: tuple[PathFact, ...]
    workspace: tuple[PathFact, ...]
    read_only: tuple[PathFact, ...]
    share: tuple[PathFact, ...]
    home: str
    own_home: PathFact | None
    directory: str
    limits: tuple[str, ...] = ()

    @property
    def base(self) -> tuple[Step, ...]:
        """Covers and exposures alone."""
        if "known_base" not in self.__dict__:
            steps = [step_of(fact, "hide") for fact in self.hidden] + [step_of(fact, "expose") for fact in self.exposed]
            self.__dict__["known_base"] = order(steps)
        return self.__dict__["known_base"]  # type: ignore[no-any-return]


def survey(policy: Policy, *, directory: str, environment: Mapping[str, str], user: int) -> Survey:
    """Looks at every path of *policy*; raises :class:`LaunchError` with every reason to refuse it."""
    optional = [observe(path) for path in (*policy.hide_if_present, *deputies.fork_server())]
    if policy.hide_deputies:
        optional += [observe(path) for path in deputies.sockets(user, environment) if is_there(path)]
    if policy.network.reach != "open":
        optional += [observe(path) for path in deputies.RESOLVERS if is_there(path)]
    required = [observe(path) for path in policy.hide]
    exposed = [observe(path) for path in policy.expose]
    hidden = [*required, *(fact for fact in optional if fact.exists)]
    workspace = [observe(path) for path in policy.workspace]
    problems = list(refuse(hidden, exposed))
    problems += [_refusal("workspace", fact) for fact in workspace if fact.kind != "directory"]
    others = [("read-only", path) for path in policy.read_only] + [("shared", path) for path in policy.share]
    problems += [_refusal(role, fact) for role, path in others if not (fact := observe(path)).exists]
    own_home = observe(policy.home) if policy.home else None
    if own_home is not None and own_home.kind != "directory":
        problems.append(_refusal("home", own_home))
    found = Survey(
        hidden=usable(hidden),
        absent=tuple(fact.given for fact in optional if not fact.exists and fact.given in policy.hide_if_present),
        exposed=usable(exposed),
        workspace=usable(workspace),
        read_only=usable(observe(path) for path in policy.read_only),
        share=usable(observe(path) for path in policy.share),
        home=ask(os.path.realpath, environment["HOME"]) if environment.get("HOME", "").startswith("/") else "",
        own_home=own_home,
        directory=ask(os.path.realpath, directory),
    )
    if not problems:
        problems += _inside_hidden(found)
        problems += _aliased(found)
    links = HardLinks(outside=(), unseen=()) if problems else ask(count_hard_links, found.hidden, found.base)
    tolerated = [ask(os.path.realpath, path) for path in policy.allow_hard_links_in]
    refused = [path for path in links.outside if not any(same_or_beneath(path, place) for place in tolerated)]
    if refused and not policy.allow_hard_links:
        problems.append(_linked(refused))
    if problems:
        raise _refused(problems)
    limits = [f"hard links into {path} were not all looked for: it holds too many files" for path in links.unseen]
    limits += [f"{path} has another name outside the hidden paths (hard link)" for path in refused[:10]]
    for place in tolerated:
        if count := sum(same_or_beneath(path, place) for path in links.outside):
            limits.append(f"{count} files in {place} have other names outside the hidden paths (hard links)")
    return found.replace(limits=tuple(limits))


def _problem(*, what: str, why: str, fix: str) -> Problem:
    from runner_e2e.errors import Problem  # only now: it is dear to import, and most launches have no problem

    return Problem(what=what, why=why, fix=fix)


def _refusal(role: str, fact: PathFact) -> Problem:
    why = f"it is {fact.kind}" if not fact.exists else "it is not a directory"
    return _problem(what=f"{role} path {fact.given} is refused", why=why, fix="name an existing directory")


def _inside_hidden(found: Survey) -> list[Problem]:
    wanted = [("working directory", found.directory)]
    wanted += [("workspace path", fact.real) for fact in (*found.workspace, *filter(None, [found.own_home]))]
    wanted += [("shared path", fact.real) for fact in found.share]
    problems: list[Problem] = []
    for name, path in wanted:
        around = decides(path, found.base)
        if around is not None and around.hidden:
            why = f"it lies in {around.path}, which is hidden" if path != around.path else "it is hidden"
            fix = "expose it as well, or start elsewhere"
            problems.append(_problem(what=f"{name} {path} is refused", why=why, fix=fix))
    return problems


def _aliased(found: Survey) -> list[Problem]:
    return [
        _problem(
            what=f"hidden path {alias.path} is refused",
            why=f"it can also be reached as {alias.alias}, through {alias.how}",
            fix=f"hide {alias.alias} as well, or unmount it",
        )
        for alias in mount_aliases(found.hidden, read_mounts(), found.base)
    ]


def _linked(paths: Sequence[str]) -> Problem:
    more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
    return _problem(
        what=f"hidden path {paths[0]}{more} is refused",
        why="the file has another name outside the hidden paths: a hard link",
        fix="remove or hide the other name, or accept it with allow_hard_links (--allow-hard-links)",
    )


def _refused(problems: Sequence[Problem]) -> LaunchError:
    from runner_e2e.errors import LaunchError

    return LaunchError.of(problems)


def make_plan(  # noqa: PLR0913 - all of them are what a plan depends on
    found: Survey,
    policy: Policy,
    argv: Sequence[str],
    *,
    host: Host,
    mode: str,
    without: Iterable[str] = (),
    environment: Mapping[str, str],
) -> Plan:
    """The plan of a launch in *mode* (privileged, user-namespace, bare) that does not use the layers *without*."""
    left_out = {*without, *(layer for layer in policy.layers if policy.need(layer) == "off")}
    mapped = mode in {"privileged", "sudo"} and "identity" not in left_out and policy.identity == "agent"
    agent, group = -1, -1
    if mapped:
        agent = group = policy.user or AGENT_USER
    elif mode == "sudo":  # root only makes the view
        agent, group = host.user, host.group
    steps, notes = found.base, tuple[str, ...]()
    if mode != "bare":
        steps, notes = _whole_view(
            found, agent if mapped else -1, user=host.user, startup="startup-files" not in left_out
        )
    else:
        notes = tuple(f"{fact.real} can be changed: read-only needs mounts" for fact in found.read_only)
        if host.user == 0:
            notes += ("as root without mounts the agent can write the kernel's settings, which start programs outside",)
    network = _network(policy, left_out)
    if policy.wall == "locked-mounts":
        notes += ("through mounts of its own the agent can rename hidden paths, and put others in their place",)
    if mode in {"user-namespace", "bare"} and host.groups and not host.privileged:
        notes += (f"the agent keeps the groups {', '.join(map(str, host.groups))} of the launcher's user",)
    return Plan(
        mode=mode,
        steps=steps,
        argv=tuple(argv),
        environment=tuple(agent_environment(policy, environment, network=network[0], doors=network[1]).items()),
        directory=found.directory,
        namespaces=0 if mode == "bare" else _namespaces(mode, left_out),
        layers=tuple((layer, "off" if layer in left_out else policy.need(layer)) for layer in policy.layers),
        launcher_user=0 if mode == "sudo" else host.user,
        launcher_group=0 if mode == "sudo" else host.group,
        user=agent,
        group=group,
        mapped=mapped,
        locked=policy.wall == "locked-mounts",
        abi=host.abi,
        notes=(*notes, *network[2]),
        network=network[0],
        hosts=policy.network.hosts if network[1] else (),
        doors=network[1],
        limits=tuple(policy.limits.items()),
        others=_others(policy, mode, user=agent if agent >= 0 else host.user),
    )


def _network(policy: Policy, left_out: set[str]) -> tuple[str, tuple[tuple[str, int], ...], tuple[str, ...]]:
    """What the agent reaches ("" for what the launcher does), the doors to the proxy, and what that leaves open."""
    if "network" in left_out:
        return "", (), ()
    if policy.network.reach != "hosts":
        return "loopback" if policy.network.reach == "open" else policy.network.reach, (), ()
    from runner_e2e.sandbox import hosts

    rules = hosts.parse_rules(policy.network.hosts)
    telling = hosts.reads_own_job(rules)
    notes = (
        (f"the agent can ask GitHub for the name of its own job: {', '.join(telling)} is allowed",) if telling else ()
    )
    return "hosts", hosts.doors(rules), notes


def _others(policy: Policy, mode: str, *, user: int) -> int:
    """How many processes outside the launch count to the agent's *user* where the launch ends up.

    The kernel counts by user and user namespace.
    """
    if "processes" not in policy.limits or policy.wall == "locked-mounts":
        return 0
    from runner_e2e.sandbox.limits import tasks_of

    first = int(mode in {"user-namespace", "bare"})  # the first process of the launch is of the same user there
    return first if mode == "user-namespace" else tasks_of(user) + first


def _namespaces(mode: str, left_out: set[str]) -> int:
    flags = kernel.CLONE_NEWNS | (kernel.CLONE_NEWUSER if mode == "user-namespace" else 0)
    for layer, flag in (
        ("pids", kernel.CLONE_NEWPID),
        ("ipc", kernel.CLONE_NEWIPC),
        ("network", kernel.CLONE_NEWNET),
    ):
        flags |= 0 if layer in left_out else flag
    return flags


def agent_environment(
    policy: Policy, environment: Mapping[str, str], *, network: str = "", doors: Sequence[tuple[str, int]] = ()
) -> dict[str, str]:
    """The variables of *environment* that the policy lets an agent have, with those that lead to its own proxy.

    With a *network* of its own, the launcher's proxies are out of reach.
    """
    rules = policy.environment
    kept = {
        name: value
        for name, value in environment.items()
        if _matches(name, rules.keep) and not _matches(name, rules.drop)
    }
    if policy.home:
        kept["HOME"] = policy.home
    if network:
        kept = {name: value for name, value in kept.items() if name.lower() not in _PROXY_VARIABLES}
    if doors:
        kept |= _proxy_variables(*doors[0])
    return {**kept, **dict(rules.set_)}


def _proxy_variables(address: str, port: int) -> dict[str, str]:
    """What tells HTTP clients of the proxy; some read only the names in small letters, some only the others."""
    values = dict.fromkeys(("http_proxy", "https_proxy"), f"http://{address}:{port}")
    values["no_proxy"] = "localhost,127.0.0.1,::1"
    # Node's own clients look at them only when told to.
    return {**values, **{name.upper(): value for name, value in values.items()}, "NODE_USE_ENV_PROXY": "1"}


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(name.startswith(p[:-1]) if p.endswith("*") else name == p for p in patterns)


def _whole_view(found: Survey, agent: int, *, user: int, startup: bool) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Covers and exposures, and around them what keeps the agent working and the harness's own files as they are.

    *agent* is the agent's user where it has one of its own, else -1; *user* is the launcher's.
    Also returns what that leaves open.
    """
    steps, notes = list(found.base), []
    own = [*found.workspace, *filter(None, [found.own_home])]
    if not own and _may_be_workspace(found.directory, found.home):
        own = [observe(found.directory)]
    if agent >= 0:
        steps += [step_of(fact, "own") for fact in own]
    steps += [step_of(fact, "lock") for fact in found.read_only]
    if startup:
        steps += _startup_locks(found, own, agent)
        if any(same_or_beneath(found.home, fact.real) for fact in own) and found.own_home is None:
            notes.append(f"startup files that are missing can be made in {found.home}, which is in the workspace")
        elif found.home:
            steps += _private_home(found.home, steps, same_user=agent < 0)
    if agent >= 0:
        steps += _passages(found, steps, agent)
    else:  # otherwise the harness could find there, in place of the workspace, what the agent made
        steps += [step_of(fact, "pin") for fact in own]
    steps += _pins(order(steps), agent if agent >= 0 else user)
    return order(steps), tuple(notes)


def _pins(steps: Sequence[Step], user: int) -> list[Step]:
    """Mount points for the directories above covers: renamed, they would leave the covered paths to others.

    A later launch, and the harness, would find there what the agent made.
    """
    entries = [entry for path in {a for step in steps for a in ancestors(step.path)} if (entry := _entry(path))]
    return [step_of(observe(path), "pin") for path in movable(steps, entries, user=user)]


def _passages(found: Survey, steps: Sequence[Step], agent: int) -> list[Step]:
    """Covers over the directories that the agent's user may not pass on the way to what it needs."""
    shared = [step_of(fact, "share") for fact in found.share]
    needed = [step.path for step in steps if step.role in {"expose", "own"}] + [found.directory]
    needed += [step.path for step in shared]
    entries = [entry for path in {a for path in needed for a in ancestors(path)} if (entry := _entry(path))]
    homes = {step.path for step in steps if step.role == "home"}
    closed = [path for path in barriers(needed, entries, user=agent, group=agent) if path not in homes]
    made = [step_of(observe(path), "hide") for path in closed]
    behind = [step for step in shared if any(beneath(step.path, path) for path in closed)]
    return made + behind + _carried(found.directory, closed, steps)


def _carried(directory: str, closed: Sequence[str], steps: Sequence[Step]) -> list[Step]:
    """The working directory where it lies behind a barrier and nothing else carries it through."""
    around = decides(directory, steps)
    if any(same_or_beneath(directory, path) for path in closed) and (around is None or around.hidden):
        return [step_of(observe(directory), "share")]
    return []


def _may_be_workspace(directory: str, home: str) -> bool:
    """Whether the working directory is given to the agent: never one of the system, or one above the home."""
    top = directory.split("/")[1]
    if beneath(home, directory) or top in _SYSTEM_DIRECTORIES:
        return False
    return directory.count("/") > 1 or top not in _SHARED_DIRECTORIES


def _entry(path: str) -> Entry | None:
    try:
        mode, _, _, user, group, _ = ask(lstat, path)
    except OSError:
        return None
    return Entry(path=path, mode=mode, user=user, group=group)


def _startup_locks(found: Survey, own: Sequence[PathFact], agent: int) -> list[Step]:
    """Directories of commands, this product's code, and hooks around, that the agent could otherwise write."""
    code = deputies.own_code()
    places = os.environ.get("PATH", "").split(":")
    places += [f"{directory}/.git/hooks" for directory in (*ancestors(found.directory), found.directory)]
    if any(fact.real == found.home for fact in own):
        places += [f"{found.home}/{name}" for name in deputies.STARTUP_FILES]
    steps = []
    for place in (*code, *places):
        if not place.startswith("/") or not is_there(place):
            continue
        fact = observe(place)
        in_workspace = any(same_or_beneath(fact.real, other.real) for other in own)
        guarded = place in code or place.endswith("/hooks") or _is_startup(fact.real, found.home)
        belongs_to_workspace = in_workspace and not guarded
        writable = agent < 0 or in_workspace
        if fact.exists and writable and not belongs_to_workspace and ask(access, fact.real, os.W_OK):
            steps.append(step_of(fact, "lock"))
    return steps


def _is_startup(path: str, home: str) -> bool:
    return os.path.dirname(path) == home and os.path.basename(path) in deputies.STARTUP_FILES


def _private_home(home: str, steps: Sequence[Step], *, same_user: bool) -> list[Step]:
    """A home in which the agent may make what it likes, with everything of the real one showing through.

    New entries last as long as the launch: nobody's shell finds a startup file there afterwards.
    """
    fact = observe(home)
    if fact.kind != "directory" or home.count("/") < 1 or home == "/" or decides(home, steps) is not None:
        return []
    made = [step_of(fact, "home")]
    try:
        names = sorted(ask(os.listdir, home))[:_MOST_HOME_ENTRIES]
    except OSError:
        return made
    taken = {step.path for step in steps}
    for name in names:
        path = f"{home}/{name}"
        if path in taken:
            continue
        if is_link(path):
            made.append(Step(path=path, role="link", target=ask(os.readlink, path)))
            continue
        entry = observe(path)
        if entry.exists:
            role = "lock" if same_user and name in deputies.STARTUP_FILES else "share"
            made.append(step_of(entry, role))  # type: ignore[arg-type]
    return made
