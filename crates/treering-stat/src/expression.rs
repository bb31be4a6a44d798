//! Expressions of metrics, as vendors of processors publish them: `100 * ( a / ( 4 * b ) ) if c else max( d , 0 )`.

/// An expression, read once and worked out for the counts of each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Node);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    Name(String),
    Negative(Box<Node>),
    Two(Operator, Box<Node>, Box<Node>),
    /// The value if the condition is not 0, the condition, and the value otherwise.
    Choice(Box<Node>, Box<Node>, Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Less,
    Greater,
    Least,
    Greatest,
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoExpression {
    /// The byte at which something else was expected.
    pub at: usize,
    /// The expected.
    pub expected: &'static str,
}

impl std::fmt::Display for NoExpression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no expression: {} is expected at byte {}", self.expected, self.at)
    }
}

impl std::error::Error for NoExpression {}

impl Expression {
    /// Reads an expression of numbers, names, `+ - * / < >`, `min`, `max`, parentheses and `x if c else y`.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Self, NoExpression> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let node = parser.choice()?;
        parser.skip_blanks();
        if parser.at == text.len() { Ok(Self(node)) } else { Err(parser.expected("an operator")) }
    }

    /// The names whose values it needs, beside those that are `constant`.
    pub fn names(&self, constant: &dyn Fn(&str) -> Option<f64>) -> Vec<String> {
        let mut names = Vec::new();
        self.0.names(constant, &mut names);
        names
    }

    /// Its value where names have the values of `value`; nothing if one has none, or by a division by 0.
    pub fn evaluate(&self, value: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        self.0.evaluate(value).filter(|value| value.is_finite())
    }
}

impl Node {
    /// Adds the names of what is worked out: of a choice by a constant, only those of the chosen side.
    fn names(&self, constant: &dyn Fn(&str) -> Option<f64>, names: &mut Vec<String>) {
        match self {
            Self::Number(_) => {}
            Self::Name(name) if constant(name).is_some() || names.contains(name) => {}
            Self::Name(name) => names.push(name.clone()),
            Self::Negative(node) => node.names(constant, names),
            Self::Two(_, left, right) => {
                left.names(constant, names);
                right.names(constant, names);
            }
            Self::Choice(then, condition, other) => match condition.evaluate(constant) {
                Some(0.0) => other.names(constant, names),
                Some(_) => then.names(constant, names),
                None => [then, condition, other].iter().for_each(|node| node.names(constant, names)),
            },
        }
    }

    fn evaluate(&self, value: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        Some(match self {
            Self::Number(number) => *number,
            Self::Name(name) => value(name)?,
            Self::Negative(node) => -node.evaluate(value)?,
            // The part that is not chosen may lack its values.
            Self::Choice(then, condition, other) => match condition.evaluate(value)? {
                0.0 => other.evaluate(value)?,
                _ => then.evaluate(value)?,
            },
            Self::Two(operator, left, right) => {
                let (left, right) = (left.evaluate(value)?, right.evaluate(value)?);
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                    Operator::Less => f64::from(u8::from(left < right)),
                    Operator::Greater => f64::from(u8::from(left > right)),
                    Operator::Least => left.min(right),
                    Operator::Greatest => left.max(right),
                }
            }
        })
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// The operators of one level of precedence.
type Level = &'static [(&'static str, Operator)];
const COMPARISONS: Level = &[("<", Operator::Less), (">", Operator::Greater)];
const SUMS: Level = &[("+", Operator::Add), ("-", Operator::Subtract)];
const PRODUCTS: Level = &[("*", Operator::Multiply), ("/", Operator::Divide)];
const LEVELS: [Level; 3] = [COMPARISONS, SUMS, PRODUCTS];

/// How deeply expressions may be nested: those of a table are not near it, and the stack has room for it.
const DEEPEST: usize = 200;

impl Parser<'_> {
    /// `x`, or `x if c else y`.
    fn choice(&mut self) -> Result<Node, NoExpression> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.expected("a less nested expression"));
        }
        let then = self.operation(&LEVELS)?;
        let node = if self.takes_word("if") {
            let condition = self.operation(&LEVELS)?;
            if !self.takes_word("else") {
                return Err(self.expected("else"));
            }
            let other = self.choice()?;
            Node::Choice(then.into(), condition.into(), other.into())
        } else {
            then
        };
        self.depth -= 1;
        Ok(node)
    }

    fn operation(&mut self, levels: &[Level]) -> Result<Node, NoExpression> {
        let Some((level, above)) = levels.split_first() else { return self.operand() };
        let mut left = self.operation(above)?;
        while let Some((_, operator)) = level.iter().find(|(sign, _)| self.takes(sign)) {
            left = Node::Two(*operator, left.into(), self.operation(above)?.into());
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Node, NoExpression> {
        if self.takes("-") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(self.expected("a less nested expression"));
            }
            let operand = self.operand()?;
            self.depth -= 1;
            return Ok(Node::Negative(operand.into()));
        }
        if self.takes("(") {
            let node = self.choice()?;
            return self.closed(node);
        }
        let word = self.word();
        let function = match word {
            "" => return Err(self.expected("a number or a name")),
            "min" => Operator::Least,
            "max" => Operator::Greatest,
            _ if word.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
                return word.parse().map(Node::Number).map_err(|_| self.expected("a number"));
            }
            _ => return Ok(Node::Name(word.to_owned())),
        };
        if !self.takes("(") {
            return Err(self.expected("("));
        }
        let left = self.choice()?;
        if !self.takes(",") {
            return Err(self.expected("a comma"));
        }
        let right = self.choice()?;
        self.closed(Node::Two(function, left.into(), right.into()))
    }

    fn closed(&mut self, node: Node) -> Result<Node, NoExpression> {
        if self.takes(")") { Ok(node) } else { Err(self.expected(")")) }
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn takes(&mut self, sign: &str) -> bool {
        self.skip_blanks();
        let is_there = self.text[self.at..].starts_with(sign);
        self.at += if is_there { sign.len() } else { 0 };
        is_there
    }

    fn takes_word(&mut self, wanted: &str) -> bool {
        let before = self.at;
        let is_there = self.word() == wanted;
        self.at = if is_there { self.at } else { before };
        is_there
    }

    /// Letters, digits, and what stands within names of events.
    fn word(&mut self) -> &str {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let length =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_.:#".contains(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn expected(&self, expected: &'static str) -> NoExpression {
        NoExpression { at: self.at, expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        let values = |name: &str| match name {
            "a" => Some(6.0),
            "b.c:1" => Some(4.0),
            "zero" => Some(0.0),
            _ => None,
        };
        Expression::parse(text).expect(text).evaluate(&values)
    }

    /// The values are those of Python, in which these texts mean the same.
    #[test]
    fn expressions_have_the_value_that_python_gives_them() {
        for (text, expected) in [
            ("1 + 2 * 3 - 4 / 8", 6.5),
            ("10 - 4 - 3", 3.0),
            ("64 / 4 / 2", 8.0),
            ("-a + 1e9 / 1e9", -5.0),
            ("max( 2 - 5 , 0 ) + min(a, b.c:1)", 4.0),
            ("( ( 4 ) * ( ( a / 2 ) if zero else ( b.c:1 ) ) )", 16.0),
            ("1 if a > b.c:1 else 2 if zero else 3", 1.0),
            ("1 if a < 4 else 2 if zero else 3", 3.0),
            ("2 * -(3 + 1)", -8.0),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn without_a_value_there_is_no_number() {
        assert_eq!(value("a + unknown"), None);
        assert_eq!(value("a / zero"), None);
        // Only one side of a choice needs its values.
        assert_eq!(value("unknown if zero else a"), Some(6.0));
    }

    #[test]
    fn wrong_expressions_are_refused_with_the_place() {
        for text in ["", "1 +", "(1", "max(1)", "1 2", "a if b", "1 $ 2", "1.2.3"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
        assert_eq!(Expression::parse("1 + )").map_err(|error| error.at), Err(4));
        assert!(Expression::parse(&"(".repeat(100_000)).is_err());
        assert!(Expression::parse(&"-".repeat(100_000)).is_err());
    }
}
