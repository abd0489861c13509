//! Texts of whole vhosts.
