"""The fault ring: every scenario, run under every fault, ends as it does without one."""
