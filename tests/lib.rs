//! Test support of the workspace.
