//! A declared or sent content encoding is kept with the bitstream.
