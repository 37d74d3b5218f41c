"""The way out of a sandbox: a proxy that lets an agent reach the hosts of a list, and no others."""
