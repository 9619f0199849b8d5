"""A plugin for pytest: langchain's own tests of its shell middleware, with our policy in the place of its host policy.

`-p middleware_policy`, with `--middleware-policy=host` for the control: nothing is replaced. README.md has the commands."""

spawned = []


def pytest_addoption(parser):
    parser.addoption(
        "--middleware-policy",
        choices=("kern", "kern-plain", "host"),
        default="kern",
        help="kern-plain: without the marker bridge",
    )


def pytest_configure(config):
    """Before the tests are imported, so that they, too, find ours where they take the host's from."""
    from langchain.agents.middleware import shell_tool

    from kern_sandbox.langchain import kern_execution_policy, policy_class

    name = config.getoption("--middleware-policy")
    counted = policy_class() if name != "host" else shell_tool.HostExecutionPolicy
    spawn = counted.spawn

    def counting(self, **params):
        spawned.append(params["command"])
        return spawn(self, **params)

    counted.spawn = counting
    if name != "host":
        shell_tool.HostExecutionPolicy = lambda **options: kern_execution_policy(
            marker_bridge=name == "kern", **options
        )


def pytest_terminal_summary(terminalreporter, config):
    """That the tests have had this policy, and not another, is seen from how many shells it started."""
    terminalreporter.write_line(f"{len(spawned)} shells of the policy {config.getoption('--middleware-policy')}")
