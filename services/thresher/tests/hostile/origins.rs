//! Lists that name many origins, many ports, or ports of other services.
