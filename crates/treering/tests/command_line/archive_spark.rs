//! Spark with the views and questions that `treering archive sql` prints for it.

use std::process::{Command, Stdio};

use serde_json::Value;
use treering_testing::programs::installed;

use crate::archive::of_kept;
use crate::archive_query::{
    QUESTIONS, asked, engines, find_program, several_days, without_strings_of_digits,
};
use crate::session::{Outcome, Session};
use crate::skip;

/// Spark takes its own views and the same texts.
#[test]
fn spark_gives_equal_rows() {
    let session = Session::new();
    if let Some(killed) = asks_spark(&session, "local") {
        assert_eq!(killed, 0);
    }
}

/// The executors are processes of their own, and end by SIGKILL while questions are answered.
#[test]
#[ignore = "takes minutes; cargo xtask fleet runs it"]
fn spark_gives_equal_rows_although_executors_are_killed() {
    let session = Session::new();
    if let Some(killed) = asks_spark(&session, "cluster") {
        assert!(killed > 0);
    }
}

/// Asks Spark every question, and compares the rows with those of another engine. It tells how many executors were
/// killed meanwhile; nothing where there is no Spark.
fn asks_spark(session: &Session, kind: &str) -> Option<u64> {
    let python = find_program("pyspark").map(|program| program.with_file_name("python3"));
    let (Some(python), Some(_)) = (python, installed("java")) else {
        skip("pyspark or java is not installed");
        return None;
    };
    let engine = engines().first().copied()?;
    several_days(session);
    for (at, question) in QUESTIONS.into_iter().enumerate() {
        let text = of_kept(session, "sql", &[&["--engine", "spark"], question].concat()).stdout;
        std::fs::write(session.path(&format!("{at}.sql")), text).expect("the folder can be written");
    }
    std::fs::write(session.path("ask.py"), ASK_SPARK).expect("the folder can be written");
    let mut spark = Command::new(python);
    spark.args(["ask.py", kind]).args((0..QUESTIONS.len()).map(|at| format!("{at}.sql")));
    spark.env_remove("SPARK_HOME").env("SPARK_LOCAL_IP", "127.0.0.1");
    spark.current_dir(session.path(".")).stdin(Stdio::null());
    let outcome = Outcome::of(spark.output().expect("python runs"));
    assert!(outcome.status.success(), "{outcome:#?}");
    let mut answers: Vec<Value> =
        outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let killed = answers.pop().and_then(|killed| killed.as_u64());
    assert_eq!(answers.len(), QUESTIONS.len());
    for (question, answer) in QUESTIONS.into_iter().zip(answers) {
        let rows: Vec<Value> =
            answer.as_array().expect("rows").iter().map(without_strings_of_digits).collect();
        assert_eq!(rows, asked(session, engine, question), "{question:?}");
    }
    killed
}

/// Asks the texts in some files, in this process or of two executors, of which it kills one while a text is asked.
const ASK_SPARK: &str = r#"
import json, os, random, signal, sys, threading, time
from pyspark.sql import SparkSession

cluster = sys.argv[1] == "cluster"
builder = SparkSession.builder.master("local-cluster[2,1,512]" if cluster else "local[2]")
settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2"}
if cluster:
    settings |= {"spark.executor.memory": "512m", "spark.task.maxFailures": "100",
                 "spark.stage.maxConsecutiveAttempts": "100", "spark.deploy.maxExecutorRetries": "-1"}
for key, value in settings.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
jobs = spark.sparkContext.statusTracker()

def executors():
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and spark.sparkContext.applicationId.encode() in words:
                yield int(process)
        except OSError:
            pass

killed = 0
def kill(answered):
    global killed
    left = 1
    while left and not answered.wait(random.uniform(0.1, 1)):
        alive = list(executors())
        if jobs.getActiveJobsIds() and len(alive) > 1:
            os.kill(random.choice(alive), signal.SIGKILL)
            killed += 1
            left -= 1

for name in sys.argv[2:]:
    statements = [text for text in open(name).read().split(";\n") if text.strip()]
    answered = threading.Event()
    if cluster:
        threading.Thread(target=kill, args=[answered]).start()
    for text in statements:
        answer = spark.sql(text)
    rows = answer.collect()
    answered.set()
    print(json.dumps([row.asDict() for row in rows], default=str), flush=True)
print(killed)
"#;
