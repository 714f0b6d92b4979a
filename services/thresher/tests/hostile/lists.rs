//! Empty and halved lists.
