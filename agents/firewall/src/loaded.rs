use std::path::Path;
use std::sync::Arc;

use crate::admit::{Admitted, ObjectAdmission, Problem, unreadable_network};
use crate::config::{Config, ConfigError, SourceName, add_release_keys};
use crate::source::{CollectedObjects, MissingSource};

/// A configuration that was read, and its rules. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The text, to be kept.
    pub text: Arc<str>,
    /// The configuration.
    pub config: Arc<Config>,
    /// Snapshots of the sources that it names, to be kept with it.
    pub collected: CollectedObjects,
    /// Its rules, and the objects that have none.
    pub admitted: Arc<Admitted>,
}

/// The reason why the objects of sources cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// The source of the controller `firewall` has not answered.
    #[error(transparent)]
    Missing(#[from] MissingSource),
    /// A network's interfaces cannot be told.
    #[error("{0}")]
    Network(Problem),
}

impl Loaded {
    /// Reads a text, as if no source but the file itself had answered.
    ///
    /// # Errors
    /// It is no valid configuration, or one of its networks has no interfaces that can be told.
    pub fn parse(text: String) -> Result<Self, ConfigError> {
        Self::parse_by(text, &mut ObjectAdmission::default())
    }

    fn parse_by(text: String, admission: &mut ObjectAdmission) -> Result<Self, ConfigError> {
        let config = Config::parse(&text)?;
        let collected = CollectedObjects::default();
        if config.controllers.firewall.source == SourceName::Static
            && let Ok(objects) = collected.by_controller(&config)
            && let Some(problem) = unreadable_network(objects.firewall)
        {
            let Problem { object, field, .. } = &problem;
            let field = format!("{object}: {field}");
            return Err(ConfigError::of_networks(
                &text,
                field,
                problem.problem,
                problem.remedy,
            ));
        }
        let admitted = admission.admit(&config);
        Ok(Self {
            text: text.into(),
            config: Arc::new(config),
            collected,
            admitted: Arc::new(admitted),
        })
    }

    /// Reads a file, with the keys of releases beside it, as if no source but the file itself had
    /// answered.
    ///
    /// # Errors
    /// The file cannot be read, or those of [`Self::parse`].
    pub fn load(path: &Path, admission: &mut ObjectAdmission) -> Result<Self, ConfigError> {
        let mut loaded = Self::parse_by(Config::read(path)?, admission)?;
        add_release_keys(Arc::make_mut(&mut loaded.config), path);
        Ok(loaded)
    }

    /// The same configuration with what sources have said.
    ///
    /// # Errors
    /// The source of the controller `firewall` has not answered, or a network of it has no interfaces
    /// that can be told.
    pub fn with_objects(
        self,
        collected: CollectedObjects,
        admission: &mut ObjectAdmission,
    ) -> Result<Self, ObjectsError> {
        let objects = collected.by_controller(&self.config)?;
        if collected == self.collected {
            return Ok(self);
        }
        if let Some(problem) = unreadable_network(objects.firewall) {
            return Err(ObjectsError::Network(problem));
        }
        let admitted = admission.admit_objects(&objects);
        Ok(Self {
            collected,
            admitted: Arc::new(admitted),
            ..self
        })
    }
}
