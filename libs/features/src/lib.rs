//! No code: dependencies of the services, with the features that all of them together need. `.ci/unify-features` writes
//! the manifest. So a service alone and the whole workspace build the same dependencies.
