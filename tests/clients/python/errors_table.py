"""Every way in which SQS refuses a request, with its code, status and words in both protocols.

A row is (action, parameters, kind of error, words). Where the parameters hold a function, it is
called with the stage to get the value.
"""
import json

ACCOUNT = "000000000000"
ARN = f"arn:aws:sqs:us-east-1:{ACCOUNT}:"

# The name of the error: the type in JSON, the code in Query, the status.
SQS, CORAL, AWS = "com.amazonaws.sqs#", "com.amazon.coral.service#", "AWS.SimpleQueueService."
NO_QUEUE = (SQS + "QueueDoesNotExist", AWS + "NonExistentQueue", 400)
NAME_EXISTS = (SQS + "QueueNameExists", "QueueAlreadyExists", 400)
BAD_RECEIPT = (SQS + "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 404)
BAD_CONTENTS = (SQS + "InvalidMessageContents", "InvalidMessageContents", 400)
BAD_NAME = (SQS + "InvalidAttributeName", "InvalidAttributeName", 400)
BAD_VALUE = (SQS + "InvalidAttributeValue", "InvalidAttributeValue", 400)
OVER_LIMIT = (SQS + "OverLimit", "OverLimit", 403)
UNSUPPORTED = (SQS + "UnsupportedOperation", AWS + "UnsupportedOperation", 400)
NO_RESOURCE = (SQS + "ResourceNotFoundException", "ResourceNotFoundException", 404)
BAD_ADDRESS = (SQS + "InvalidAddress", "InvalidAddress", 404)
TOO_MANY = (SQS + "TooManyEntriesInBatchRequest", AWS + "TooManyEntriesInBatchRequest", 400)
EMPTY_BATCH = (SQS + "EmptyBatchRequest", AWS + "EmptyBatchRequest", 400)
SAME_IDS = (SQS + "BatchEntryIdsNotDistinct", AWS + "BatchEntryIdsNotDistinct", 400)
TOO_LONG = (SQS + "BatchRequestTooLong", AWS + "BatchRequestTooLong", 400)
BAD_ID = (SQS + "InvalidBatchEntryId", AWS + "InvalidBatchEntryId", 400)
IPV = (CORAL + "InvalidParameterValueException", "InvalidParameterValue", 400)
MISSING = (CORAL + "MissingRequiredParameterException", "MissingParameter", 400)
MALFORMED = (CORAL + "SerializationException", "MalformedInput", 400)

Q, FIFO, SMALL, DEAD, SOURCE = "errors", "errors.fifo", "errors-small", "errors-dead", "errors-source"
NOWHERE = "errors-nowhere"

BAD_FIFO_NAME = ("The name of a FIFO queue can only include alphanumeric characters, hyphens, or "
                 "underscores, must end with .fifo suffix and be 1 to 80 in length.")
BAD_STANDARD_NAME = ("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in "
                     "length")
GONE = "Message does not exist or is not available for visibility timeout change."
MAX_RESULTS = ("Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer "
               "between 1 and 1000.")
ONE_ENCRYPTION = ("You can use one type of server-side encryption (SSE) at one time. You can either "
                  "enable KMS SSE or SQS SSE.")
BAD_ALLOW = ("Invalid value for the parameter RedriveAllowPolicy. Reason: Amazon SQS can't create "
             "the redrive allow policy, as it's in an unsupported format.")
WRONG_QUEUE_TYPE = "The request includes a parameter that is not valid for this queue type."
TOKEN = "can only include alphanumeric and punctuation characters. 1 to 128 in length."


def missing(name):
    return f"The request must contain the parameter {name}."


def value(given, parameter, reason):
    return f"Value {given} for parameter {parameter} is invalid. Reason: {reason}"


def create(attributes, name="errors-new"):
    return ("CreateQueue", {"QueueName": name, "Attributes": attributes})


def change(attributes, queue=Q):
    return ("SetQueueAttributes", {"QueueUrl": queue, "Attributes": attributes})


def send(queue=Q, **parameters):
    return ("SendMessage", {"QueueUrl": queue, "MessageBody": "x", **parameters})


def attribute(name="x", **members):
    return send(MessageAttributes={name: members})


def string(name):
    return attribute(name, DataType="String", StringValue="v")


def batch(action, *entries, queue=Q):
    return (action, {"QueueUrl": queue, "Entries": list(entries)})


def receive(queue=Q, **parameters):
    return ("ReceiveMessage", {"QueueUrl": queue, **parameters})


def permit(**parameters):
    return ("AddPermission", {"QueueUrl": Q, "Label": "l", "AWSAccountIds": [ACCOUNT],
                              "Actions": ["SendMessage"], **parameters})


def visibility(**parameters):
    return ("ChangeMessageVisibility", {"QueueUrl": Q, **parameters})


def move(**parameters):
    return ("StartMessageMoveTask", {"SourceArn": ARN + DEAD, **parameters})


def refused_redrive(policy, reason, queue=Q):
    text = json.dumps(policy)
    return (*change({"RedrivePolicy": text}, queue), IPV, value(text, "RedrivePolicy", reason))


def refused_allowance(policy, reason):
    text = json.dumps(policy)
    words = "Amazon SQS can't create the redrive allow policy. " + reason
    return (*change({"RedriveAllowPolicy": text}), IPV, value(text, "RedriveAllowPolicy", words))


QUEUES = [
    (*create({}, ""), IPV, "Queue name cannot be empty"),
    (*create({}, "a b"), IPV, BAD_STANDARD_NAME),
    (*create({}, "a" * 81), IPV, BAD_STANDARD_NAME),
    (*create({}, "a.fifo"), IPV, BAD_STANDARD_NAME),
    (*create({"FifoQueue": "true"}, ".fifo"), IPV, BAD_FIFO_NAME),
    (*create({"FifoQueue": "true"}, "a" * 76 + ".fifo"), IPV, BAD_FIFO_NAME),
    (*create({"FifoQueue": "true"}, "a"), IPV, BAD_FIFO_NAME),
    (*create({"FifoQueue": "false"}, "a"), BAD_NAME, "Unknown Attribute FifoQueue."),
    ("CreateQueue", {}, MISSING, missing("QueueName")),
    (*create({"VisibilityTimeout": "31"}, Q), NAME_EXISTS, "A queue already exists with the same "
     "name and a different value for attribute VisibilityTimeout"),
    (*create({"Foo": "1"}), BAD_NAME, "Unknown Attribute Foo."),
    (*create({"QueueArn": "x"}), BAD_NAME, "Unknown Attribute QueueArn."),
    ("CreateQueue", {"QueueName": "errors-new", "tags": {"": "v"}}, IPV,
     "Tag keys must be between 1 and 128 characters in length."),
    ("DeleteQueue", {"QueueUrl": NOWHERE}, NO_QUEUE, None),
    ("GetQueueUrl", {"QueueName": NOWHERE}, NO_QUEUE, None),
    ("GetQueueUrl", {"QueueName": ""}, IPV,
     "Value for parameter QueueName is invalid. Reason: Must specify a queue name."),
    ("PurgeQueue", {"QueueUrl": NOWHERE}, NO_QUEUE, None),
    *(("PurgeQueue", {"QueueUrl": url}, NO_QUEUE, None)
      for url in ("http://no-such-place", "http://no-such-place/", "/")),
    ("PurgeQueue", {"QueueUrl": "http://localhost/one"}, BAD_ADDRESS,
     "The address http://localhost/one is not valid for this endpoint."),
    ("PurgeQueue", {"QueueUrl": "http://localhost/x"}, BAD_ADDRESS,
     "The address http://localhost/x is not valid for this endpoint."),
    ("ListQueues", {"MaxResults": 1001}, IPV, MAX_RESULTS),
    ("ListQueues", {"MaxResults": -1}, IPV, MAX_RESULTS),
    ("ListQueues", {"NextToken": "x", "MaxResults": 1}, IPV, "Invalid or expired next token."),
    ("ListDeadLetterSourceQueues", {"QueueUrl": NOWHERE}, NO_QUEUE, None),
    ("ListDeadLetterSourceQueues", {"QueueUrl": DEAD, "MaxResults": 1001}, IPV, MAX_RESULTS),
    ("GetQueueAttributes", {"QueueUrl": Q, "AttributeNames": ["Foo"]}, BAD_NAME,
     "Unknown Attribute Foo."),
    ("GetQueueAttributes", {"QueueUrl": NOWHERE, "AttributeNames": ["All"]}, NO_QUEUE, None),
    ("SetQueueAttributes", {"QueueUrl": Q}, MISSING, missing("Attribute.Name")),
    *((*change(attributes, NOWHERE), NO_QUEUE, None)
      for attributes in ({"DelaySeconds": "1"}, {"DelaySeconds": "x"}, {"Policy": "x"}, {"Foo": "x"},
                         {"RedrivePolicy": "x"}, {})),
    (*change({"QueueArn": "x"}), BAD_NAME, "Unknown Attribute QueueArn."),
    *((*change({"FifoQueue": given}), BAD_NAME, "Unknown Attribute FifoQueue.")
      for given in ("true", "True", "false", "x")),
    *((*change({"FifoQueue": given}, FIFO), BAD_VALUE, "Invalid value for the parameter FifoQueue. "
       "Reason: Modifying queue type is not supported.") for given in ("false", "False", "x")),
    ("TagQueue", {"QueueUrl": Q, "Tags": {"k" * 129: "v"}}, IPV,
     "Tag keys must be between 1 and 128 characters in length."),
    ("TagQueue", {"QueueUrl": Q, "Tags": {f"k{i}": "v" for i in range(51)}}, IPV,
     f"Too many tags added for queue {Q}."),
    ("TagQueue", {"QueueUrl": NOWHERE, "Tags": {"k": "v"}}, NO_QUEUE, None),
    ("UntagQueue", {"QueueUrl": NOWHERE, "TagKeys": ["k"]}, NO_QUEUE, None),
    ("ListQueueTags", {"QueueUrl": NOWHERE}, NO_QUEUE, None),
]

ATTRIBUTES = [
    *((*change({name: bad}), BAD_VALUE, f"Invalid value for the parameter {name}.")
      for name, bads in {
          "VisibilityTimeout": ("", " 6", "-45", "1.5", "true", "43201", "9" * 30),
          "DelaySeconds": ("901",), "MaximumMessageSize": ("1023", "1048577"),
          "MessageRetentionPeriod": ("59", "1209601"), "ReceiveMessageWaitTimeSeconds": ("21",),
          "KmsDataKeyReusePeriodSeconds": ("59", "86401"), "SqsManagedSseEnabled": ("yes",),
      }.items()
      for bad in bads),
    # AWS gives no reason here; ours begins with AWS's text.
    *((*change({"Policy": bad}), BAD_VALUE,
       f"Invalid value for the parameter Policy. Reason: {reason}")
      for bad, reason in (("x", "It is not a JSON object."), ("[]", "It is not a JSON object."),
                          ("{}", "Statement is missing."), ('{"Statement":[]}', "Statement is empty."))),
    (*change({"ContentBasedDeduplication": "true"}), BAD_NAME,
     "Unknown Attribute ContentBasedDeduplication."),
    *((*change({name: "queue"}), BAD_NAME,
       f"You can specify the {name} only when FifoQueue is set to true.")
      for name in ("DeduplicationScope", "FifoThroughputLimit")),
    (*change({"DeduplicationScope": "x"}, FIFO), BAD_VALUE,
     "Invalid value for the parameter DeduplicationScope."),
    (*change({"FifoThroughputLimit": "perMessageGroupId"}, FIFO), BAD_VALUE,
     "The perMessageGroupId value is allowed only when the value for DeduplicationScope is "
     "messageGroup"),
    *((*change({"KmsMasterKeyId": "alias/aws/sqs", "SqsManagedSseEnabled": given}), BAD_NAME,
       ONE_ENCRYPTION) for given in ("true", "True")),
    *((*change({"ContentBasedDeduplication": bad}, FIFO), BAD_VALUE,
       "Invalid value for the parameter ContentBasedDeduplication.") for bad in ("tru", "1", "")),
    (*change({"RedrivePolicy": "x"}), IPV, "Invalid value for the parameter RedrivePolicy. Reason: "
     "Redrive policy is not a valid JSON map."),
    refused_redrive({"deadLetterTargetArn": ARN + DEAD},
                    "Redrive policy does not contain mandatory attribute: maxReceiveCount."),
    refused_redrive({"maxReceiveCount": 1},
                    "Redrive policy does not contain mandatory attribute: deadLetterTargetArn."),
    *(refused_redrive({"deadLetterTargetArn": ARN + DEAD, "maxReceiveCount": count},
                      f"Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 "
                      "both inclusive.") for count in (0, 1001)),
    refused_redrive({"deadLetterTargetArn": ARN + NOWHERE, "maxReceiveCount": 1},
                    "Dead letter target does not exist."),
    refused_redrive({"deadLetterTargetArn": ARN + FIFO, "maxReceiveCount": 1},
                    "Dead-letter queue must be same type of queue as the source.."),
    refused_redrive({"deadLetterTargetArn": "arn:aws:sns:us-east-1:000000000000:x",
                     "maxReceiveCount": 1},
                    "Only SQS queues are valid resources for deadLetterTargetArn."),
    refused_redrive({"deadLetterTargetArn": DEAD, "maxReceiveCount": 1},
                    "Dead-letter target ARN should be fully qualified ARN."),
    refused_redrive({"deadLetterTargetArn": ARN + DEAD, "maxReceiveCount": 1, "x": 1},
                    "Only following attributes are supported: [maxReceiveCount, "
                    "deadLetterTargetArn]."),
    (*change({"RedriveAllowPolicy": "x"}), IPV, BAD_ALLOW),
    (*change({"RedriveAllowPolicy": '{"redrivePermission":"x"}'}), IPV, BAD_ALLOW),
    (*change({"RedriveAllowPolicy": '{"redrivePermission":"denyAll","redrivePermission":"allowAll"}'}),
     IPV, BAD_ALLOW),
    refused_allowance({"redrivePermission": "byQueue"}, "When you specify the byQueue permission "
                      "type, you must also specify one or more sourceQueueArns values."),
    refused_allowance({"redrivePermission": "byQueue", "sourceQueueArns": [ARN + Q] * 11},
                      "The maximum number of source queue ARNs you can specify is 10."),
    refused_allowance({"redrivePermission": "allowAll", "sourceQueueArns": [ARN + Q]},
                      "To specify one or more source queue ARNs, you must set redrivePermission to "
                      "byQueue."),
]

PERMISSIONS = [
    (*permit(QueueUrl=NOWHERE), NO_QUEUE, None),
    (*permit(Label="a b"), IPV, value("a b", "Label", "Can only include alphanumeric characters, "
                                      "hyphens, or underscores. 1 to 80 in length.")),
    (*permit(Actions=["CreateQueue"]), IPV,
     value("SQS:CreateQueue", "ActionName",
           "Only the queue owner is allowed to invoke this action.")),
    *((*permit(Actions=[name]), IPV,
       value(f"SQS:{name}", "ActionName",
             "Please refer to the appropriate WSDL for a list of valid actions."))
      for name in ("SendMessageBatch", "Foo")),
    (*permit(Actions=["*"] * 8), OVER_LIMIT, "8 Actions were found, maximum allowed is 7."),
    (*permit(AWSAccountIds=["x"]), IPV, value("[x]", "PrincipalId", "Unable to verify.")),
    (*permit(Label="taken"), IPV, value("taken", "Label", "Already exists.")),
    ("RemovePermission", {"QueueUrl": Q, "Label": "none"}, IPV,
     value("none", "Label", "can't find label on existing policy.")),
    ("RemovePermission", {"QueueUrl": SMALL, "Label": "none"}, IPV,
     value("none", "Label", "can't find label.")),
    ("RemovePermission", {"QueueUrl": NOWHERE, "Label": "none"}, NO_QUEUE, None),
]

MESSAGES = [
    (*send(NOWHERE), NO_QUEUE, None),
    (*send(NOWHERE, MessageBody="", DelaySeconds=901), NO_QUEUE, None),
    (*send(MessageBody=""), MISSING, missing("MessageBody")),
    ("SendMessage", {"QueueUrl": Q}, MISSING, missing("MessageBody")),
    (*send(SMALL, MessageBody="x" * 1025), IPV,
     "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."),
    (*send(MessageBody="x" * (1 << 20) + "x"), IPV,
     "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."),
    *((*send(DelaySeconds=delay), IPV,
       value(delay, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900."))
      for delay in (901, -1)),
    (*send(MessageBody="a\x07b"), BAD_CONTENTS, "Invalid binary character '#x7' was found in the "
     "message body, the set of allowed characters is #x9 | #xA | #xD | [#x20-#xD7FF] | "
     "[#xE000-#xFFFD] | [#x10000-#x10FFFF]."),
    (*send(MessageBody="\uffff"), BAD_CONTENTS, "Invalid binary character '#xFFFF' was found in the "
     "message body, the set of allowed characters is #x9 | #xA | #xD | [#x20-#xD7FF] | "
     "[#xE000-#xFFFD] | [#x10000-#x10FFFF]."),
    (*send(MessageDeduplicationId="d"), IPV, "The request include parameter MessageDeduplicationId "
     "which is not valid for this queue type"),
    (*send(MessageGroupId="a b"), IPV, value("a b", "MessageGroupId", "MessageGroupId " + TOKEN)),
    (*send(MessageGroupId="g" * 129), IPV,
     value("g" * 129, "MessageGroupId", "MessageGroupId " + TOKEN)),
    (*send(FIFO), MISSING, missing("MessageGroupId")),
    (*send(FIFO, MessageGroupId="g"), IPV, "The queue should either have ContentBasedDeduplication "
     "enabled or MessageDeduplicationId provided explicitly"),
    (*send(FIFO, MessageGroupId="g", MessageDeduplicationId="d\u00e9"), IPV,
     value("d\u00e9", "MessageDeduplicationId", "MessageDeduplicationId " + TOKEN)),
    (*send(FIFO, MessageGroupId="g", MessageDeduplicationId="d", DelaySeconds=60), IPV,
     value(60, "DelaySeconds",
           "The request include parameter that is not valid for this queue type.")),
]

MESSAGE_ATTRIBUTES = [
    (*send(MessageAttributes={f"a{i}": {"DataType": "String", "StringValue": "v"}
                              for i in range(11)}), IPV,
     "Number of message attributes [11] exceeds the allowed maximum [10]."),
    *((*attribute(DataType=kind, StringValue="v"), IPV,
       "The type of message (user) attribute 'x' is invalid. You must use only the following "
       "supported type prefixes: Binary, Number, String.") for kind in ("string", "Date", ".x")),
    (*attribute(DataType="String", StringValue=""), IPV,
     "Message (user) attribute 'x' must contain a non-empty value of type 'String'."),
    (*attribute(DataType="", StringValue="v"), IPV,
     "The message (user) attribute 'x' must contain a non-empty message attribute type."),
    (*attribute(DataType="String"), IPV,
     "The message (user) attribute 'x' must contain a non-empty message attribute value."),
    *((*attribute(DataType="Number", StringValue=number), IPV,
       "Can't cast the value of message (user) attribute 'x' to a number.")
      for number in ("v", "1e200", "0x1", "1" * 39, "NaN", " 1")),
    (*attribute(DataType="String", StringValue="v", BinaryValue="eA=="), IPV,
     "Message (user) attribute 'x' must have a single value."),
    (*attribute(DataType="Binary", StringValue="v"), IPV,
     "Message (user) attribute 'x' with type 'Binary' must use field 'Binary'."),
    (*attribute(DataType="String", StringListValues=["v"]), UNSUPPORTED,
     "Message attribute list values in SendMessage operation are not supported."),
    *((*string(name), IPV, "Message (user) attributes name can only contain upper and lower score "
       "characters, digits, periods, hyphens and underscores. ")
      for name in ("a b", "§", "!", "\"", "(", "?", "e\u0301")),
    *((*string(name), IPV, "You can't use message attribute names beginning with 'AWS.' or "
       "'Amazon.'. These strings are reserved for internal use.") for name in ("AWS.x", "amazon.x")),
    (*string(".x"), IPV, "Message (user) attribute name must not begin with character '.'."),
    (*string("x."), IPV, "Message (user) attribute name must not end with character '.'."),
    (*string("x..y"), IPV, "Message (user) attribute name must not have successive '.' characters."),
    (*string("x" * 257), IPV, "Message (user) attribute name must be shorter than 256 bytes."),
    (*attribute(DataType="String." + "x" * 250, StringValue="v"), IPV,
     "Message (user) attribute type must be shorter than 256 bytes."),
    (*send(MessageSystemAttributes={"x": {"DataType": "String", "StringValue": "v"}}), IPV,
     "Message system attribute name 'x' is invalid."),
]

SEND_BATCH, DELETE_BATCH = "SendMessageBatch", "DeleteMessageBatch"
CHANGE_BATCH = "ChangeMessageVisibilityBatch"
ENTRY = {"Id": "a", "MessageBody": "x"}
BATCHES = [
    *((*batch(action), EMPTY_BATCH,
       f"There should be at least one {action}RequestEntry in the request.")
      for action in (SEND_BATCH, DELETE_BATCH, CHANGE_BATCH)),
    *((*batch(action, *({"Id": f"a{i}"} for i in range(11))), TOO_MANY,
       "Maximum number of entries per request are 10. You have sent 11.")
      for action in (SEND_BATCH, DELETE_BATCH, CHANGE_BATCH)),
    *((*batch(action, {"Id": "a"}, {"Id": "a"}), SAME_IDS, "Id a repeated.")
      for action in (SEND_BATCH, DELETE_BATCH, CHANGE_BATCH)),
    *((*batch(SEND_BATCH, {**ENTRY, "Id": bad}), BAD_ID, "A batch entry id can only contain "
       "alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
      for bad in ("", "a b", "a" * 81)),
    (*batch(SEND_BATCH, ENTRY, {"MessageBody": "x"}), MISSING,
     missing("SendMessageBatchRequestEntry.2.Id")),
    (*batch(SEND_BATCH, {"Id": "a", "MessageBody": "x" * 1048575}, {"Id": "b", "MessageBody": "xy"}),
     TOO_LONG, "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."),
    *((*batch(action, *entries, queue=NOWHERE), NO_QUEUE, None)
      for action in (SEND_BATCH, DELETE_BATCH, CHANGE_BATCH)
      for entries in ((ENTRY,), (), ({"Id": "a b"},), (ENTRY,) * 11)),
    (*batch(SEND_BATCH, {**ENTRY, "MessageDeduplicationId": "d"}, queue=FIFO), IPV,
     missing("MessageGroupId")),
    (*batch(SEND_BATCH, {**ENTRY, "MessageGroupId": "g", "MessageDeduplicationId": "d"},
            {**ENTRY, "Id": "b", "MessageDeduplicationId": "e"}, queue=FIFO), IPV,
     missing("MessageGroupId")),
]

RECEIVES = [
    (*receive(NOWHERE), NO_QUEUE, None),
    (*receive(NOWHERE, MaxNumberOfMessages=11), NO_QUEUE, None),
    *((*receive(MaxNumberOfMessages=n), IPV,
       value(n, "MaxNumberOfMessages", "Must be between 1 and 10, if provided."))
      for n in (0, 11, -1)),
    *((*receive(WaitTimeSeconds=n), IPV,
       value(n, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")) for n in (-1, 21)),
    *((*receive(VisibilityTimeout=n), IPV,
       value(n, "VisibilityTimeout", "Must be >= 0 and <= 43200, if provided."))
      for n in (-1, 43201)),
    (*receive(ReceiveRequestAttemptId="a"), IPV,
     value("a", "ReceiveRequestAttemptId", WRONG_QUEUE_TYPE)),
    (*receive(FIFO, ReceiveRequestAttemptId="a b"), IPV,
     value("a b", "ReceiveRequestAttemptId", "ReceiveRequestAttemptId " + TOKEN)),
    (*receive(AttributeNames=["Foo"]), BAD_NAME, "Unknown Attribute Foo."),
    *((action, {"QueueUrl": Q, "ReceiptHandle": "x", **more}, BAD_RECEIPT,
       'The input receipt handle "x" is not a valid receipt handle.')
      for action, more in (("DeleteMessage", {}), ("ChangeMessageVisibility",
                                                   {"VisibilityTimeout": 1}))),
    ("DeleteMessage", {"QueueUrl": Q}, MISSING, missing("ReceiptHandle")),
    ("DeleteMessage", {"QueueUrl": NOWHERE, "ReceiptHandle": "x"}, NO_QUEUE, None),
    (*visibility(VisibilityTimeout=1), MISSING, missing("ReceiptHandle")),
    (*visibility(ReceiptHandle="x"), MISSING, missing("VisibilityTimeout")),
    *((*visibility(ReceiptHandle="x", VisibilityTimeout=n), IPV,
       value(n, "VisibilityTimeout", "Must be between 0 and 43200.")) for n in (-1, 43201)),
    (*visibility(ReceiptHandle=lambda stage: stage.deleted, VisibilityTimeout=1), IPV,
     lambda stage: value(stage.deleted, "ReceiptHandle", GONE)),
    (*visibility(ReceiptHandle=lambda stage: stage.held, VisibilityTimeout=43200), IPV,
     value(43200, "VisibilityTimeout",
           "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]")),
    ("DeleteMessage", {"QueueUrl": FIFO, "ReceiptHandle": lambda stage: stage.lapsed}, IPV,
     lambda stage: value(stage.lapsed, "ReceiptHandle", "The receipt handle has expired.")),
    ("DeleteMessage", {"QueueUrl": SMALL, "ReceiptHandle": lambda stage: stage.held}, BAD_RECEIPT,
     lambda stage: f'The input receipt handle "{stage.held}" is not a valid receipt handle.'),
]

MOVES = [
    (*move(SourceArn=ARN + NOWHERE), NO_RESOURCE,
     "The resource that you specified for the SourceArn parameter doesn't exist."),
    (*move(DestinationArn=ARN + NOWHERE), NO_RESOURCE,
     "The resource that you specified for the DestinationArn parameter doesn't exist."),
    *((action, {"SourceArn": "x"}, IPV, "You must use this format to specify the SourceArn: "
       "arn:<partition>:<service>:<region>:<account-id>:<resource-id>")
      for action in ("StartMessageMoveTask", "ListMessageMoveTasks")),
    (*move(SourceArn=ARN + Q), IPV, "Source queue must be configured as a Dead Letter Queue."),
    (*move(DestinationArn=ARN + DEAD), IPV,
     "Source queue arn and destination queue arn cannot be the same."),
    (*move(DestinationArn=ARN + FIFO), IPV,
     "The source queue and destination queue must be of the same queue type."),
    *((*move(MaxNumberOfMessagesPerSecond=rate), IPV, "Value for parameter "
       "MaxNumberOfMessagesPerSecond is invalid. Reason: You must enter a number that's between 1 "
       "and 500.") for rate in (0, 501)),
    ("StartMessageMoveTask", {}, MISSING, missing("SourceArn")),
    ("ListMessageMoveTasks", {"SourceArn": ARN + NOWHERE}, NO_RESOURCE,
     "The resource that you specified for the SourceArn parameter doesn't exist."),
    ("ListMessageMoveTasks", {"SourceArn": ARN + DEAD, "MaxResults": 11}, IPV, "Value for parameter "
     "MaxResults is invalid. Reason: You must enter a number that's between 1 and 10."),
    ("CancelMessageMoveTask", {"TaskHandle": "x"}, IPV,
     "Value for parameter TaskHandle is invalid."),
    ("CancelMessageMoveTask", {"TaskHandle": lambda stage: stage.unknown_task}, NO_RESOURCE,
     "Task does not exist."),
    ("CancelMessageMoveTask", {"TaskHandle": lambda stage: stage.task_of_no_queue}, NO_RESOURCE,
     "The resource that you specified for the SourceArn parameter doesn't exist."),
    ("CancelMessageMoveTask", {"TaskHandle": lambda stage: stage.ended_task}, IPV,
     "Only active tasks can be cancelled."),
    ("CancelMessageMoveTask", {}, MISSING, missing("TaskHandle")),
]

# Entries of batches that fail alone: (action, entry, code, text).
ENTRIES = [
    (SEND_BATCH, {}, "MissingParameter", missing("MessageBody")),
    (SEND_BATCH, {"MessageBody": "a\x07"}, "InvalidMessageContents",
     "Invalid binary character '#x7' was found in the message body, the set of allowed characters "
     "is #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF]."),
    (SEND_BATCH, {"MessageBody": "x", "DelaySeconds": 901}, "InvalidParameterValue",
     value(901, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")),
    (DELETE_BATCH, {"ReceiptHandle": "x"}, "ReceiptHandleIsInvalid",
     'The input receipt handle "x" is not a valid receipt handle.'),
    (DELETE_BATCH, {}, "MissingParameter", missing("ReceiptHandle")),
    (CHANGE_BATCH, {"ReceiptHandle": "x"}, "MissingParameter",
     missing("ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout")),
    (CHANGE_BATCH, {"ReceiptHandle": "x", "VisibilityTimeout": 43201}, "InvalidParameterValue",
     value(43201, "VisibilityTimeout",
           "VisibilityTimeout must be an integer between 0 and 43200.")),
    (CHANGE_BATCH, {"ReceiptHandle": "x", "VisibilityTimeout": 1}, "ReceiptHandleIsInvalid",
     'The input receipt handle "x" is not a valid receipt handle.'),
]
