//! The repository's own rules and its generated files, as tests (`tests/`).
