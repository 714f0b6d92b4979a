#![doc = include_str!("../README.md")]

mod answer;
mod api;
mod cases;
mod check;
mod cli;
mod cost;
mod documents;
mod far_proxy;
mod fleet;
mod folder;
mod get_all;
mod keep;
mod listed;
mod machine;
mod measure;
mod meter;
mod nats_meter;
mod nginx;
mod peers;
mod place;
mod plain_http;
mod process;
mod publish_server;
mod read_list;
mod read_pages;
mod ready;
mod report;
mod source;
mod sources_server;
mod stats;
mod store_proxy;
mod thresher;
mod tls_source;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Case, Cli, Options};
use crate::report::Report;

fn main() -> ExitCode {
    let done = match Cli::parse().case {
        Case::SmallFiles(options) => print(&options, cases::small_files::run(&options)),
        Case::SmallFilesFleet(options) => print(&options, cases::small_files_fleet::run(&options)),
        Case::LargeFiles(options) => print(&options, cases::large_files::run(&options)),
        Case::LargeFilesTls(options) => print(&options, cases::far::large_files(&options)),
        Case::SmallFilesTls(options) => print(&options, cases::far::small_files(&options)),
        Case::FarLarge(options) => print(&options.common, cases::far::large(&options)),
        Case::FarSmall(options) => print(&options.common, cases::far::small(&options)),
        Case::Latency(options) => print(&options, cases::latency::run(&options)),
        Case::MillionLinks(options) => print(&options, cases::million_unchanged::run_linked(&options)),
        Case::MillionUnchanged(options) => print(&options, cases::million_unchanged::run(&options)),
        Case::IncrementalIdle(options) => print(&options, cases::incremental_idle::run(&options)),
        Case::ChangeBurst(options) => print(&options, cases::change_burst::run(&options)),
        Case::MillionAudit(options) => print(&options, cases::million_audit::run(&options)),
        Case::ReadLists(options) => print(&options, cases::read_lists::run(&options)),
        Case::Oai(options) => print(&options.common, cases::oai::run(&options)),
        Case::OaiLarge(options) => print(&options, cases::oai_large::run(&options)),
        Case::OaiLoss(options) => print_figures(&options.common, cases::oai_loss::run(&options)),
        Case::Publish(options) => print(&options, cases::publish::run(&options)),
        Case::PublishFiles(options) => print(&options, cases::publish_files::run(&options)),
        Case::PublishPush(options) => print_figures(&options.common, cases::publish_push::run(&options)),
        Case::PublishServe(options) => print(&options.common, cases::publish_serve::run(&options)),
        Case::Timegate(options) => print_figures(&options, cases::timegate::run(&options)),
        Case::ScaleOut(options) => print(&options, cases::scale_out::run(&options)),
        Case::ManyMembers(options) => print(&options, cases::large_packages::MANY_MEMBERS.run(&options)),
        Case::LargeMembers(options) => print(&options, cases::large_packages::LARGE_MEMBERS.run(&options)),
        Case::Scrub(options) => print(&options, cases::scrub::run(&options)),
        Case::Console(options) => print(&options.common, cases::console::run(&options)),
        Case::Profile(options) => cases::profile::run(&options).map(|tables| {
            println!("{tables}");
            ExitCode::SUCCESS
        }),
        Case::PushLag(options) => print(&options, cases::push_lag::run(&options)),
        Case::HostileFleet(options) => print(&options, cases::hostile_fleet::run(&options)),
        Case::ManySources(options) => print_figures(&options.common, cases::many_sources::run(&options)),
        Case::SmallSource(options) => print_figures(&options, cases::small_source::run(&options)),
        Case::PushFlood(options) => print(&options.common, cases::push_flood::run(&options)),
        Case::ServeSources(arguments) => sources_server::run(&arguments).map(|()| ExitCode::SUCCESS),
        Case::GetAll(arguments) => get_all::run(&arguments).map(|()| ExitCode::SUCCESS),
        Case::ReadList(arguments) => read_list::run(&arguments).map(|()| ExitCode::SUCCESS),
        Case::ReadPages(arguments) => read_pages::run(&arguments).map(|()| ExitCode::SUCCESS),
        Case::Measure(arguments) => measure::run(&arguments).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("load-tests: {error:#}");
        ExitCode::from(2)
    })
}

/// The same for a case whose counts say more than its seconds: they follow as a table of their own.
fn print_figures(options: &Options, report: anyhow::Result<Report>) -> anyhow::Result<ExitCode> {
    let report = report?;
    let figures = report.figures();
    let status = print(options, Ok(report))?;
    if !options.json_only {
        eprintln!("{figures}");
    }
    Ok(status)
}

/// Prints the report as JSON on standard output, and as a table on standard error.
fn print(options: &Options, report: anyhow::Result<Report>) -> anyhow::Result<ExitCode> {
    let report = report?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    if !options.json_only {
        eprintln!("{}", report.table());
    }
    let broken = report.broken();
    for check in &broken {
        eprintln!("load-tests: {check}");
    }
    Ok(ExitCode::from(u8::from(!broken.is_empty())))
}
