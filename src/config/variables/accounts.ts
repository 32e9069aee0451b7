import { choice, limit, number, onOff, setting, text } from '../schemas.js'

export const ACCOUNT_VARIABLES = {
  REGISTRATIONS: setting(
    choice(['open', 'invite', 'closed']),
    'Who may sign up: `open`, `invite`, `closed`. Published in NodeInfo',
    { whenNotSet: '`closed` (`open` on localhost)', example: 'closed' },
  ),
  SIGN_UPS_PER_DAY: setting(
    limit(30),
    'Maximum sign-ups in 24 hours with `REGISTRATIONS=open`. Beyond it the page answers 503 with `Retry-After`. 0: unlimited',
  ),
  CLOSE_GRACE_DAYS: setting(
    number(0, 60, 7, 'days'),
    'Days between the request to close an account and its deletion, 0 to 60',
  ),
  TERMS_FILE: setting(
    { type: 'string', minLength: 1, description: 'the path of a file' },
    'A Markdown file with the terms of the pod, at most 256 KiB. The terms are shown at `/terms`; users must accept them at sign-up, and the accepted version is stored with the account (`/settings/data`). The web process reads the file at start',
    { example: 'terms.md' },
  ),
  PODMIN_CONTACT: setting(
    {
      type: 'string',
      maxLength: 254,
      pattern: '^(https?://[^\\s<>"]+|[^\\s@<>",;:()]+@[A-Za-z0-9.-]+)$',
      description: 'an e-mail address, or an http or https address',
    },
    'An e-mail address or a URL, shown to people who cannot sign in',
    { whenNotSet: 'the page of `PODMIN_ACCOUNT`', example: 'podmin@pod.example' },
  ),
  INACTIVE_ACCOUNT_DAYS: setting(
    {
      type: 'integer',
      minimum: 0,
      maximum: 36_500,
      default: 0,
      // Owners are warned 30 days before.
      not: { minimum: 1, maximum: 30 },
      description: 'a number of days from 31, or 0 for never',
    },
    'An account is closed after this number of days (at least 31) without a sign-in and without use by an application. The owner is warned 30 days earlier. The grace period is `CLOSE_GRACE_DAYS`. Signing in keeps the account. Needs `SMTP_URL`, because only accounts with a confirmed e-mail address are closed. `PODMIN_ACCOUNT` and the last admin are never closed. 0: never',
  ),
  INVITATIONS_PER_USER: setting(
    number(0, 1_000, 5),
    'Maximum open invitations per user (`/settings/invitations`), from 7 days after the sign-up. Moderators and admins have no limit. 0: only they can invite',
  ),
  UNATTENDED_DAYS: setting(
    number(0, 365, 7, 'days'),
    'With `REGISTRATIONS=open`: after this number of days without an active moderator or admin, sign-ups require approval until an admin runs `pod sign-ups attended`. 0: off',
  ),
  SIGN_UP_CONFIRMATION: setting(choice(['on', 'off']), 'Whether a sign-up needs a confirmed e-mail address', {
    whenNotSet: '`on` with `SMTP_URL`, else `off`',
    example: 'on',
  }),
  SIGN_UP_APPROVAL: setting(
    onOff('off'),
    '`on`: each sign-up without an invitation requires the approval of a moderator (`pod sign-ups`)',
  ),
  SIGN_UP_BACKLOG: setting(
    limit(50),
    'Maximum sign-ups that wait for approval. Beyond it the page answers 503. 0: unlimited',
  ),
  EMAIL_DOMAIN_BLOCKLIST: setting(
    text('domains, separated by commas', ''),
    'Mail domains that no sign-up may use, with their subdomains, separated by commas',
    { example: 'mail.example' },
  ),
  STAFF_SECOND_FACTOR: setting(
    onOff('off'),
    '`on`: moderators and admins need a second factor. Without one they can only open the page that sets it up',
  ),
  IMPORTS: setting(
    choice(['on', 'operator', 'off'], 'on'),
    'Who may import account archives: `on` (every user, at `/settings/import`), `operator` (only with `pod archive import`) or `off` (no one)',
  ),
  IMPORT_BYTES: setting(number(2 ** 20, 2 ** 36, 512 * 2 ** 20, 'bytes'), 'Maximum bytes of an imported archive'),
  IMPORT_PHOTO_BYTES: setting(
    number(2 ** 20, 2 ** 40, 5 * 2 ** 30, 'bytes'),
    'Maximum bytes of the zip of the photos of an imported archive, and of the photos that the import fetches from the old pod',
  ),
  IMPORT_TOTAL_BYTES: setting(
    number(2 ** 20, 2 ** 50, 20 * 2 ** 30, 'bytes'),
    'Maximum total size of the uploaded archives and photos of all accounts, with the lists into which the archives are split. Beyond it the page answers 503, and an archive whose lists do not fit is refused. An upload that would leave less than 1 GiB of free disk space is refused with 507',
  ),
} as const
