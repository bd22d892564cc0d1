// Says in words who may do what by a policy. Only what the server evaluates counts; these are words
// about it.

const listed = (value) => (Array.isArray(value) ? value : [value]).map(String);

function joined(words, last = "and") {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}

function principalWords(kind, id) {
  if (id === "*") return "everybody";
  if (kind === "Service") return `the service ${id}`;
  if (/^\d{12}$/.test(id)) return `account ${id}`;
  const arn = /^arn:[^:]*:(?:iam|sts)::(\d{12}):(root|[a-z-]+\/.+)$/.exec(id);
  if (!arn) return id;
  const [, account, who] = arn;
  if (who === "root") return `account ${account}`;
  const [type, ...name] = who.split("/");
  return `${type} ${name.join("/")} of account ${account}`;
}

function whoOf(principal) {
  if (typeof principal === "string") return principalWords("AWS", principal);
  return joined(Object.entries(principal ?? {}).flatMap(([kind, ids]) =>
    listed(ids).map((id) => principalWords(kind, id))));
}

function actionsOf(actions) {
  const names = listed(actions).map((action) => action.replace(/^sqs:/i, ""));
  return names.includes("*") ? "do everything" : joined(names);
}

const RELATIONS = {
  Equals: "is", EqualsIgnoreCase: "is, whatever the case,", Like: "is like", Bool: "is",
  IpAddress: "is within", LessThan: "is less than", LessThanEquals: "is at most",
  GreaterThan: "is more than", GreaterThanEquals: "is at least",
};

const SUBJECTS = {
  "aws:sourceip": "the caller's address", "aws:sourcearn": "the source",
  "aws:sourceaccount": "the account of the source", "aws:principalarn": "the caller",
  "aws:currenttime": "the time", "aws:useragent": "the client's name",
};

function conditionWords(operator, key, values) {
  const optional = operator.endsWith("IfExists");
  const all = operator.startsWith("ForAllValues:");
  let name = operator.replace(/IfExists$/, "").replace(/^For(All|Any)Values?:/, "");
  const subject = `${all ? "every value of " : ""}${SUBJECTS[key.toLowerCase()] ?? key}`;
  const given = listed(values);
  if (name === "Null") return `${subject} is ${given[0] === "true" ? "not known" : "known"}`;
  if (key.toLowerCase() === "aws:securetransport")
    return `the connection is ${given[0] === "true" ? "encrypted" : "not encrypted"}`;
  const not = name.includes("Not");
  name = name.replace("Not", "");
  if (name.startsWith("Date"))
    name = name.replace("Date", "");
  else name = name.replace(/^(String|Numeric|Arn)(?=.)/, "");
  const relation = RELATIONS[name] ?? `(${operator})`;
  return `${subject} ${not ? relation.replace("is", "is not") : relation} ${joined(given, "or")}${
    optional ? " (or is not known)" : ""}`;
}

function conditionsOf(condition) {
  return Object.entries(condition ?? {}).flatMap(([operator, keys]) =>
    Object.entries(keys ?? {}).map(([key, values]) => conditionWords(operator, key, values)));
}

// One statement as a sentence.
function sentenceOf(statement, arn) {
  const who = statement.NotPrincipal !== undefined
    ? `everybody except ${whoOf(statement.NotPrincipal)}` : whoOf(statement.Principal);
  const verb = statement.Effect === "Deny" ? "must not" : "may";
  const what = statement.NotAction !== undefined
    ? `do everything except ${actionsOf(statement.NotAction)}` : actionsOf(statement.Action);
  const resources = listed(statement.Resource ?? statement.NotResource ?? arn);
  const here = statement.NotResource === undefined
    && resources.some((one) => one === arn || one === "*");
  const where = here ? "" : ` on ${statement.NotResource === undefined ? "" : "all but "}${
    joined(resources, "or")}`;
  const conditions = conditionsOf(statement.Condition);
  const sentence = `${who} ${verb} ${what}${where}${
    conditions.length ? `, if ${joined(conditions)}` : ""}.`;
  return sentence[0].toUpperCase() + sentence.slice(1);
}

// { statements: [{ sid, denies, open, words }], problem }
export function explain(text, arn) {
  if (!text.trim()) return { statements: [], problem: "" };
  let policy;
  try {
    policy = JSON.parse(text);
  } catch (error) {
    return { statements: [], problem: `This is not JSON: ${error.message}` };
  }
  const given = policy?.Statement;
  if (!given || typeof given !== "object")
    return { statements: [], problem: "A policy has a list named Statement." };
  const statements = (Array.isArray(given) ? given : [given])
    .filter((one) => one && typeof one === "object");
  return { problem: "", statements: statements.map((one) => ({
    sid: typeof one.Sid === "string" ? one.Sid : "",
    denies: one.Effect === "Deny",
    open: one.Effect !== "Deny" && whoOf(one.Principal).includes("everybody") && !one.Condition,
    words: sentenceOf(one, arn),
  })) };
}
