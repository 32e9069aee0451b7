/**
 * Every `reason` that an error body of the client API can carry, with its condition for the API description. Clients compare
 * these tokens: add new ones, never rename or remove one.
 */
export const ERROR_REASONS = {
  // The request itself
  token_missing: 'The request carries no access token.',
  token_invalid: 'The access token is unknown, expired or revoked, or its account is closed.',
  token_repeated: 'The request carries an access token in more than one way.',
  insufficient_scope: 'The token lacks a scope that this request needs.',
  role_needed: 'The account does not have the role that this request needs.',
  not_found: 'There is no such path, or its object was deleted during the request.',
  malformed_request: 'The request is not valid HTTP, or its head cannot be read.',
  malformed_body: 'The body is not valid JSON, not a JSON object, or not a valid form.',
  unsupported_media_type: 'The body is neither JSON nor a form, or it is compressed.',
  body_too_large: 'The body is larger than this operation accepts.',
  url_too_long: 'The address of the request is too long.',
  headers_too_large: 'The head of the request is too large.',
  request_timeout: 'The request took too long to arrive.',
  field_missing: 'A required field or parameter is missing; `field` names it.',
  field_invalid: 'A field or parameter has a wrong value; `field` names it.',
  rate_limited: 'Too many requests; `Retry-After` gives the seconds to wait.',
  overloaded: 'The pod is overloaded; `Retry-After` gives the seconds to wait.',
  unavailable: 'The pod cannot reach its database or its queue; `Retry-After` gives the seconds to wait.',
  internal_error: 'An error of the pod. Report the `X-Request-Id` to its operator.',

  // Idempotency-Key
  idempotency_key_invalid: 'The `Idempotency-Key` does not have 1 to 255 visible ASCII characters.',
  idempotency_key_in_use:
    'The first request with this `Idempotency-Key` is still running; `Retry-After` gives the seconds to wait.',
  idempotency_key_reused: 'This `Idempotency-Key` was used for a different request.',
  idempotency_result_lost:
    'The first request with this `Idempotency-Key` took effect, but its response is lost. Fetch the resource to check.',

  // Objects that do not exist, or that this token may not read
  post_not_found: 'The post does not exist, or this token may not read it.',
  comment_not_found: 'The post has no such comment.',
  person_not_found: 'The person does not exist, has closed the account, or may not be seen with this token.',
  photo_not_found: 'The photo does not exist, or this token may not read or delete it.',
  aspect_not_found: 'You have no aspect with this id.',
  conversation_not_found: 'You have no conversation with this guid.',
  notification_not_found: 'You have no notification with this guid.',
  root_not_found: 'The original post of this reshare was deleted.',
  message_not_found: 'The conversation has no message with this guid.',
  action_not_found: 'There is no action with this number.',
  case_not_found: 'There is no case with this number, or it is about you.',
  filter_not_found: 'There is no filter with this number.',
  answer_not_found: 'The post has no poll, or its poll has no such answer.',
  aspects_not_found: 'None of the ids is an aspect of yours.',
  not_in_aspect: 'The person is not in this aspect.',

  // Values that the operation does not accept
  name_invalid: 'The name is blank, too long, or has characters that a name cannot have.',
  name_taken: 'You already have an aspect with this name.',
  bio_invalid: 'The bio is too long, or has characters that a text cannot have.',
  location_invalid: 'The location is too long or incomplete, or its coordinates are out of range.',
  gender_invalid: 'The gender is too long, or has characters that a text cannot have.',
  birthday_invalid: 'The birthday is not a calendar day.',
  tags_invalid: 'There are more than five tags, or one of them is too long.',
  tag_invalid: 'The tag is empty or too long.',
  text_required: 'A post needs a text or a photo.',
  text_invalid: 'The text is blank, too long, or has characters that a text cannot have.',
  filtered: 'A filter of the pod does not accept the text.',
  subject_invalid: 'The subject is blank or too long.',
  recipients_invalid: 'There are no or too many recipients, or one of them is not a mutual contact.',
  reason_invalid: 'The reason of the report is blank or too long.',
  poll_invalid: 'The question or an answer is blank or too long, or there are too few or too many answers.',
  aspects_required: 'A private post needs at least one id of your own aspects.',
  photos_invalid: 'A photo is not a pending photo of yours, or there are too many.',
  image_missing: 'The form has no file in its field `image`, or more than one.',
  image_invalid: 'The file is not a JPEG, PNG, GIF or WebP picture that the pod can read.',
  alt_text_invalid: 'The description of the photo is too long, or has characters that a text cannot have.',
  image_too_large: 'The file is larger than the operator of the pod allows.',
  photo_quota: 'Your photos use all the space or the number that the pod allows.',

  // Actions of moderators
  reason_needed: 'The action needs a reason.',
  own_account: 'The action concerns your own account.',
  target_outranks: 'Only an admin can take actions on moderators and admins.',
  last_admin: 'The account is the last admin of the pod.',
  confirmation_needed:
    '`confirm` does not equal the label of the target; `preview` shows what the action would change.',
  taken_by_other: 'Another moderator has taken the case; `taken_by` names them. `force` takes it over.',
  bad_transition: 'The state of the case does not allow this.',
  queue_not_pausable: 'This queue cannot be stopped: it finds lost work again.',
  filter_invalid: 'The kind of the filter does not accept its value, or it has no field.',
  too_many_filters: 'The pod has as many filters as are possible.',
  days_invalid: 'The number of days is out of range.',
  not_undoable: 'The action is final, or a later action has changed the same; `action_id` names that one.',
  not_remote: 'The account of this person is on this pod.',
  pod_not_found: 'No pod at this host is known.',
  operation_not_found: 'There is no operation with this number.',
  operation_running: 'The same operation is running already.',
  import_not_found: 'There is no import with this number.',
  csv_invalid: 'The file is not valid CSV.',
  file_missing: 'The form has no field `file`.',
  too_many_rows: 'The list has more than 20 000 rows or 5 MiB.',
  rule_not_found: 'There is no rule with this number.',
  domain_invalid: 'The domain is not the name of a host.',
  own_pod: 'The domain is that of this pod, or one above it.',
  too_broad: 'The domain is a public suffix, such as `com` or `co.uk`.',
  public_comment_invalid: 'The comment is too long, or has characters that a text cannot have.',
  until_invalid: 'The end is not in the future.',
  not_local: 'The account of this person is on another pod.',

  // Requests that the state of an object, or its owner, does not allow
  not_author: 'The object belongs to another person.',
  own_post: 'The post is your own.',
  own_person: 'The person is yourself.',
  not_public: 'The post is not public.',
  blocked_by_author: 'The author has blocked you.',
  person_blocked: 'You block this person.',
  account_closed: 'The account of this person is closed.',
  already_blocked: 'You already block this person.',
  not_blocked: 'You do not block this person.',
  already_in_aspect: 'The person is already in this aspect.',
  already_liked: 'You have already liked this.',
  not_liked: 'You have not liked this.',
  already_reshared: 'You have already reshared this post.',
  already_reported: 'You have already reported this.',
  already_subscribed: 'You are already subscribed to this post.',
  not_subscribed: 'You are not subscribed to this post.',
  already_hidden: 'You have already hidden this post.',
  not_hidden: 'You have not hidden this post.',
  already_voted: 'You have already voted in this poll.',
  already_followed: 'You already follow this tag.',
  not_followed: 'You do not follow this tag.',
} as const satisfies Readonly<Record<string, string>>

export type ErrorReason = keyof typeof ERROR_REASONS

/** The field of a request that a reason is about, unless the route names another one. */
export const FIELD_OF_REASON: Readonly<Partial<Record<ErrorReason, string>>> = {
  name_invalid: 'name',
  name_taken: 'name',
  bio_invalid: 'bio',
  location_invalid: 'location',
  gender_invalid: 'gender',
  birthday_invalid: 'birthday',
  tags_invalid: 'tags',
  text_required: 'body',
  text_invalid: 'body',
  subject_invalid: 'subject',
  recipients_invalid: 'recipients',
  reason_invalid: 'reason',
  reason_needed: 'reason',
  csv_invalid: 'file',
  file_missing: 'file',
  too_many_rows: 'file',
  domain_invalid: 'domain',
  own_pod: 'domain',
  too_broad: 'domain',
  public_comment_invalid: 'public_comment',
  until_invalid: 'until',
  poll_invalid: 'poll',
  aspects_required: 'aspects',
  photos_invalid: 'photos',
  answer_not_found: 'poll_answer',
  aspects_not_found: 'aspect_ids',
  filter_invalid: 'value',
  days_invalid: 'days',
  alt_text_invalid: 'alt_text',
  image_missing: 'image',
  image_invalid: 'image',
  image_too_large: 'image',
  own_person: 'person_guid',
  person_blocked: 'person_guid',
  account_closed: 'person_guid',
  already_in_aspect: 'person_guid',
}

/** The reason of an error that is thrown without one. */
const REASON_OF_STATUS: Readonly<Record<number, ErrorReason>> = {
  400: 'malformed_request',
  401: 'token_invalid',
  403: 'insufficient_scope',
  404: 'not_found',
  408: 'request_timeout',
  413: 'body_too_large',
  414: 'url_too_long',
  415: 'unsupported_media_type',
  422: 'field_invalid',
  429: 'rate_limited',
  431: 'headers_too_large',
  503: 'overloaded',
}

export function reasonOfStatus(status: number): ErrorReason {
  return REASON_OF_STATUS[status] ?? (status < 500 ? 'malformed_request' : 'internal_error')
}

export function isErrorReason(reason: string): reason is ErrorReason {
  return Object.hasOwn(ERROR_REASONS, reason)
}
