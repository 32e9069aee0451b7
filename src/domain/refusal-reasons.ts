import type { ArchiveFault } from '../protocol/archives/archive-fault.js'

/**
 * The reasons of use cases that the client API shows, with their conditions for its description. Clients compare these tokens: add new
 * ones, never rename or remove one.
 */
export const API_REFUSALS = {
  // Rights
  insufficient_scope: 'The token lacks a scope that this request needs.',
  role_needed: 'The account does not have the role that this request needs.',
  not_found: 'There is no such path, or its object was deleted during the request.',

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
  cluster_not_found: 'There is no cluster with this number.',
  filter_not_found: 'There is no filter with this number.',
  dead_letter_not_found: 'There is no such dead letter.',
  trace_not_found: 'No row belongs to this request.',
  quarantined_not_found: 'There is no rejected message with this number.',
  answer_not_found: 'The post has no poll, or its poll has no such answer.',
  aspects_not_found: 'None of the ids is an aspect of yours.',
  not_in_aspect: 'The person is not in this aspect.',

  // Values that the operation does not accept
  name_invalid: 'The name is blank, too long, or has invalid characters.',
  too_many_aspects: 'You have as many aspects as an account may have.',
  too_many_tags: 'You follow as many tags as an account may follow.',
  name_taken: 'You already have an aspect with this name.',
  bio_invalid: 'The bio is too long, or has invalid characters (control characters or unpaired surrogates).',
  location_invalid: 'The location is too long or incomplete, or its coordinates are out of range.',
  gender_invalid: 'The gender is too long, or has invalid characters (control characters or unpaired surrogates).',
  birthday_invalid: 'The birthday is not a calendar day.',
  tags_invalid: 'There are more than five tags, or one of them is too long.',
  tag_invalid: 'The tag is empty or too long.',
  text_required: 'A post needs a text or a photo.',
  text_invalid: 'The text is blank, too long, or has invalid characters (control characters or unpaired surrogates).',
  filtered: 'A filter of the pod does not accept the text.',
  subject_invalid: 'The subject is blank or too long.',
  recipients_invalid: 'There are no or too many recipients, or one of them is not a mutual contact.',
  reason_invalid: 'The reason of the report or of the action is blank or too long.',
  poll_invalid: 'The question or an answer is blank or too long, or there are too few or too many answers.',
  aspects_required: 'A private post needs at least one id of your own aspects.',
  photos_invalid: 'A photo is not a pending photo of yours, or there are too many.',
  language_invalid: 'The pod does not have this language.',
  time_zone_invalid: 'There is no time zone of this name.',
  aspects_invalid: 'One of the aspects is not yours, or a public post is to have aspects.',
  digest_hour_invalid: 'The hour is not a number from 0 to 23.',
  mail_kind_invalid: 'There is no such kind of notice, or it has no such delivery; `field` names it.',
  read_only: 'The field cannot be changed over the API; `field` names it.',
  // A reason of the settings only; all other objects have `changed_meanwhile`.
  changed_since: 'The settings are not the version that `If-Match` names. Read them again.',
  image_invalid: 'The file is not a JPEG, PNG, GIF or WebP picture that the pod can read.',
  alt_text_invalid:
    'The description of the photo is too long, or has invalid characters (control characters or unpaired surrogates).',
  photo_quota: 'Your photos use all the space or the number that the pod allows.',

  // Exports of an account
  page_only: 'A token cannot get the private key: use the page `/settings/export`.',
  isolated_copy: 'This copy of the pod is isolated: it makes no exports.',
  export_not_found: 'You have no export with this id.',
  export_running: 'An export of this kind is being made already.',
  export_not_ready: 'The export is not finished.',
  export_expired: 'The file of the export is deleted.',

  // Actions of moderators
  reason_needed: 'The action needs a reason.',
  own_account: 'The action concerns your own account.',
  person_in_use: 'Something of the person is stored.',
  podmin_account: 'The setting PODMIN_ACCOUNT names the account.',
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
  sign_up_not_found: 'There is no such sign-up that waits for a decision.',
  invitation_not_found: 'There is no invitation with this number.',
  uses_invalid: 'The number of sign-ups is out of range.',
  note_invalid: 'The note is too long, or has invalid characters (control characters or unpaired surrogates).',
  pod_not_found: 'No pod at this host is known.',
  pod_blocked: 'The pod is blocked, so no request is sent to it.',
  pod_unusable: 'The host of the pod is not a usable address.',
  probed_recently: 'The pod was probed less than ten seconds ago.',
  operation_not_found: 'There is no operation with this number.',
  operation_running: 'The same operation is running already.',
  import_not_found: 'There is no import with this number.',
  csv_invalid: 'The file is not valid CSV.',
  file_missing: 'The form has no field `file`.',
  too_many_rows: 'The list has more than 20 000 rows or 5 MiB.',
  rule_not_found: 'There is no rule with this number.',
  no_contact: 'The operator of the other pod does not share with the podmin account of this pod.',
  cidr_invalid: 'This is not a network address, or not a network like 198.51.100.0/24.',
  own_address: 'Your own address is in the network.',
  protected_network: 'The network is this machine, or has a proxy that the pod trusts.',
  comment_invalid: 'The comment is too long, or has invalid characters (control characters or unpaired surrogates).',
  domain_invalid: 'The domain is not the name of a host.',
  own_pod: 'The domain is that of this pod, or one above it.',
  too_broad: 'The domain is a public suffix, such as `com` or `co.uk`; or the network is too wide.',
  public_comment_invalid:
    'The comment is too long, or has invalid characters (control characters or unpaired surrogates).',
  until_invalid: 'The end is not in the future.',
  not_local: 'The account of this person is on another pod.',

  // Requests that the state of an object, or its owner, does not allow
  not_author: 'The object belongs to another person.',
  own_post: 'The post is your own.',
  own_person: 'The person is yourself.',
  not_public: 'The post is not public.',
  blocked_by_author: 'The author has blocked you.',
  person_blocked: 'You block this person.',
  moved: 'The person has moved to another account; `moved_to` names it.',
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

/** The reasons of use cases that only pages and commands have, or that routes answer themselves. */
type OtherRefusalReason =
  | 'authorization_missing'
  | 'backup_running'
  | 'check_needed'
  | 'client_missing'
  | 'client_unknown'
  | 'closed_by_moderator'
  | 'code_wrong'
  | 'content_needs_move'
  | 'email_invalid'
  | 'email_refused'
  | 'email_taken'
  | 'factor_needed'
  | 'file_exists'
  | 'forbidden'
  | 'host_changed'
  | 'import_beyond_cancel'
  | 'import_over'
  | 'import_running'
  | 'imports_off'
  | 'invalid_client_metadata'
  | 'invalid_redirect_uri'
  | 'invitation_unusable'
  | 'invitations_not_allowed'
  | 'mail_expired'
  | 'mail_unavailable'
  | 'move_running'
  | 'no_space'
  | 'not_closing'
  | 'nothing_chosen'
  | 'old_account_unproven'
  | 'old_address_missing'
  | 'old_address_wrong'
  | 'passkey_invalid'
  | 'passkey_known'
  | 'passkey_missing'
  | 'passkey_name_invalid'
  | 'password_invalid'
  | 'picture_not_found'
  | 'reset_failed'
  | 'sign_up_closed'
  | 'sign_up_full'
  | 'terms_changed'
  | 'terms_missing'
  | 'token_not_valid'
  | 'token_unknown'
  | 'too_large'
  | 'too_many_checks'
  | 'too_many_exports'
  | 'too_many_invitations'
  | 'too_many_passkeys'
  | 'too_many_reports'
  | 'totp_off'
  | 'totp_on'
  | 'upload_missing'
  | 'upload_offset'
  | 'upload_running'
  | 'uploads_full'
  | 'user_closed'
  | 'user_missing'
  | 'username_invalid'
  | 'username_reserved'
  | 'username_taken'
  | ArchiveFault

export type RefusalReason = keyof typeof API_REFUSALS | OtherRefusalReason
