import { API_REFUSALS } from '../../domain/refusal-reasons.js'

/**
 * Every `reason` that an error body of the client API can carry, with its condition for the API description. Clients compare
 * these tokens: add new ones, never rename or remove one.
 */
export const ERROR_REASONS = {
  // The request itself
  token_missing: 'The request carries no access token.',
  token_invalid: 'The access token is unknown, expired or revoked, or its account is closed.',
  token_repeated: 'The request carries an access token in more than one way.',
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

  // If-Match
  changed_meanwhile: 'The object is not the version that `If-Match` names. Read it again.',

  // Values that the operation does not accept
  image_missing: 'The form has no file in its field `image`, or more than one.',
  image_too_large: 'The file is larger than the operator of the pod allows.',

  // Refusals of use cases
  ...API_REFUSALS,
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
  uses_invalid: 'uses',
  note_invalid: 'note',
  domain_invalid: 'domain',
  cidr_invalid: 'cidr',
  own_address: 'cidr',
  protected_network: 'cidr',
  comment_invalid: 'comment',
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
  language_invalid: 'language',
  time_zone_invalid: 'time_zone',
  aspects_invalid: 'default_post_aspect_ids',
  digest_hour_invalid: 'digest_hour',
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
