//! The file of a suite: programs, their parameters and versions.

mod built;
mod file;
mod input;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use treering_archive::{Archive, Version};

use super::job::{Job, Measure};
use super::measuring::Stop;
use super::parameters::{Parameter, Template, Values, check_used, combinations};
use crate::failure::Failure;
use built::Built;
use file::{File, Program};

/// A suite.
#[derive(Debug)]
pub struct Suite {
    path: PathBuf,
    file: File,
}

/// The wishes of the command line.
pub struct Asked<'a> {
    /// Only these programs; all if there are none.
    pub programs: &'a [OsString],
    /// Instructions as well.
    pub exact: bool,
    /// In place of the file's.
    pub timeout: Option<Duration>,
}

/// Names in braces that are no parameters.
const VERSION: &str = "version";
const INPUT: &str = "input";

impl Suite {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = crate::open::read_file(path)?;
        let wrong = |error: String| Failure::new(format_args!("{}: {error}", path.display()));
        let text = String::from_utf8(text).map_err(|_| wrong("it is not in UTF-8".to_owned()))?;
        Ok(Self { path: path.to_owned(), file: File::parse(&text).map_err(wrong)? })
    }

    /// How often everything is run, if the file says it.
    pub fn rounds(&self) -> Option<usize> {
        self.file.rounds
    }

    /// The floor of changes in time.
    pub fn floor(&self) -> Option<f64> {
        self.file.floor
    }

    /// The limits of changes, by metric.
    pub fn limits(&self) -> &BTreeMap<String, f64> {
        &self.file.limit
    }

    /// Whether a program is only plotted beside others, without limits.
    pub fn is_competitor(&self, program: &str) -> bool {
        self.file.program.get(program).is_some_and(|program| program.compare.as_deref() == Some("plot"))
    }

    /// The jobs, with versions built and inputs made. The work trees are removed with the second value.
    pub fn jobs(
        &self,
        asked: &Asked<'_>,
        archive: &mut Archive,
        stop: &Stop,
    ) -> Result<(Vec<Job>, Built), Failure> {
        let programs = self.chosen(asked.programs)?;
        let planned =
            programs.iter().map(|(name, program)| self.plan(name, program)).collect::<Result<Vec<_>, _>>();
        let planned = planned.map_err(|error| self.wrong(error))?;
        let built = Built::make(self.folder(), &self.file.version, stop)?;
        let mut jobs = Vec::new();
        for plan in planned {
            for values in &plan.all {
                let input = match &plan.setup {
                    Some(setup) => Some(input::make(setup, values, &built, archive, stop)?),
                    None => None,
                };
                for (version, folder) in built.versions() {
                    let fill = |name: &str| match name {
                        VERSION => folder.as_os_str().to_owned(),
                        INPUT => {
                            input.as_ref().map_or_else(OsString::new, |(_, path)| path.as_os_str().to_owned())
                        }
                        _ => values.get(name).cloned().unwrap_or_default().into(),
                    };
                    // A program without {version} is the same in all of them: a competitor is run once.
                    if !plan.template.has(VERSION) && plan.is_competitor && version != built.last() {
                        continue;
                    }
                    jobs.push(Job {
                        program: plan.name.clone(),
                        version: plan.version(version),
                        values: values.clone(),
                        words: plan.template.fill(fill),
                        directory: Some(self.folder().to_owned()),
                        input: input.as_ref().map(|(id, _)| id.clone()),
                        timeout: asked.timeout.or(self.file.timeout),
                        measure: Measure {
                            instructions: asked.exact || self.file.measure.instructions,
                            ..self.file.measure
                        },
                        same: plan.same,
                        cbs: plan.cbs,
                    });
                }
            }
        }
        Ok((jobs, built))
    }

    /// The folder of the file, in which its commands run.
    fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    fn wrong(&self, error: String) -> Failure {
        Failure::new(format_args!("{}: {error}", self.path.display()))
    }

    fn chosen(&self, names: &[OsString]) -> Result<Vec<(&String, &Program)>, Failure> {
        let all = &self.file.program;
        if let Some(unknown) =
            names.iter().find(|name| !all.keys().any(|known| known.as_str() == name.as_os_str()))
        {
            let known: Vec<&str> = all.keys().map(String::as_str).collect();
            let message =
                format!("there is no program {}: there are {}", unknown.display(), known.join(", "));
            return Err(self.wrong(message));
        }
        Ok(all
            .iter()
            .filter(|(name, _)| {
                names.is_empty() || names.iter().any(|asked| asked.as_os_str() == name.as_str())
            })
            .collect())
    }

    fn plan(&self, name: &str, program: &Program) -> Result<Plan, String> {
        let of = |error: String| format!("[program.{name}] {error}");
        let words =
            shlex::split(&program.run).ok_or_else(|| of("run has a quote without its end".to_owned()))?;
        if words.is_empty() {
            return Err(of("run is empty".to_owned()));
        }
        // A competitor has the parameters and inputs of another program.
        let of_input = match &program.input {
            Some(other) => Some(
                self.file.program.get(other).ok_or_else(|| of(format!("input names no program: {other}")))?,
            ),
            None => None,
        };
        let setup = program.setup.as_ref().or(of_input.and_then(|other| other.setup.as_ref()));
        if program.input.is_some() && setup.is_none() {
            return Err(of("input names a program without a setup".to_owned()));
        }
        let stated = if program.params.is_empty() {
            of_input.map_or(&program.params, |other| &other.params)
        } else {
            &program.params
        };
        let skip = if program.skip.is_empty() {
            of_input.map_or(&program.skip, |other| &other.skip)
        } else {
            &program.skip
        };
        let mut parameters: Vec<Parameter> = stated
            .iter()
            .map(|(name, values)| Parameter { name: name.clone(), values: values.clone() })
            .collect();
        let mut names: Vec<&str> = stated.keys().map(String::as_str).collect();
        if let Some(reserved) = names.iter().find(|name| [VERSION, INPUT].contains(name)) {
            return Err(of(format!("a parameter cannot be called {reserved}")));
        }
        names.push(VERSION);
        let with_input: Vec<&str> = names.iter().copied().chain([INPUT]).collect();
        let setup = setup
            .map(|setup| {
                let template = Template::new(&[setup.into()], &with_input)?;
                if template.has(VERSION) {
                    return Err("setup cannot use {version}: all versions have the same input".to_owned());
                }
                if template.has(INPUT) {
                    Ok(template)
                } else {
                    Err("setup has no place for {input}".to_owned())
                }
            })
            .transpose()
            .map_err(of)?;
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let template =
            Template::new(&words, if setup.is_some() { &with_input } else { &names }).map_err(of)?;
        // A competitor runs once for each of its inputs, and takes no part in parameters that neither knows.
        if of_input.is_some() {
            parameters.retain(|parameter| is_used(&template, setup.as_ref(), &parameter.name));
        }
        check_used(&parameters, |name| is_used(&template, setup.as_ref(), name)).map_err(of)?;
        let skipped = |values: &Values| {
            let is_in = |(name, value): (&String, &String)| values.get(name) == Some(value);
            skip.iter().any(|skip| skip.iter().all(is_in))
        };
        let mut all = combinations(&parameters).map_err(of)?;
        all.retain(|values| !skipped(values));
        let is_competitor = program.compare.as_deref() == Some("plot");
        let same = match program.same.as_deref() {
            Some("stdout") => true,
            None | Some("none") => false,
            Some(other) => return Err(of(format!("same is {other:?}; it can be \"stdout\" or \"none\""))),
        };
        if let Some(other) = program.compare.as_deref().filter(|compare| *compare != "plot") {
            return Err(of(format!("compare is {other:?}; it can only be \"plot\"")));
        }
        Ok(Plan { name: name.to_owned(), template, setup, all, same, cbs: program.cbs, is_competitor })
    }
}

fn is_used(template: &Template, setup: Option<&Template>, name: &str) -> bool {
    template.has(name) || setup.is_some_and(|setup| template.has(INPUT) && setup.has(name))
}

/// A program whose places and parameters fit.
struct Plan {
    name: String,
    template: Template,
    setup: Option<Template>,
    all: Vec<Values>,
    same: bool,
    cbs: bool,
    is_competitor: bool,
}

impl Plan {
    /// A competitor has no version of ours.
    fn version(&self, ours: &Version) -> Version {
        if self.is_competitor && !self.template.has(VERSION) { Version::default() } else { ours.clone() }
    }
}

/// Reads `["instructions", "time", "memory"]`.
pub fn measure(names: &[String]) -> Result<Measure, String> {
    let known = ["instructions", "time", "memory"];
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("{unknown:?} cannot be measured; there are {}", known.join(", ")));
    }
    let has = |name: &str| names.iter().any(|other| other == name);
    if names.is_empty() {
        return Err("nothing is to be measured".to_owned());
    }
    Ok(Measure { instructions: has("instructions"), time: has("time"), memory: has("memory") })
}
