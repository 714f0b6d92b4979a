//! Attacks of a hostile or broken Source, sender or client: each run ends, and what they send stays data.

mod bodies;
mod bot_walls;
mod command_line;
mod documents;
mod encodings;
mod foreign;
mod gateway;
mod hints;
mod lists;
mod names;
mod networks;
mod origins;
mod our_documents;
mod privileges;
mod run_limits;
mod secrets;
mod terminal;
mod threats;
mod times;
