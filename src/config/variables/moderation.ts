import { number, onOff, setting, text } from '../schemas.js'

export const MODERATION_VARIABLES = {
  REPORT_EVIDENCE_DAYS: setting(
    number(1, 365, 90, 'days'),
    'Days for which the copy of a reported text is kept after its case is closed, 1 to 365',
  ),
  ADMIN_CONSOLE: setting(onOff('on'), '`off`: the web console for moderators and admins under `/admin` is not served'),
  ADMIN_CONSOLE_NETWORKS: setting(
    text('networks like 192.0.2.0/24, separated by commas', ''),
    'Networks from which the console can be used, like `192.0.2.0/24,2001:db8::/32`',
    { whenNotSet: 'all', example: '192.0.2.0/24,2001:db8::/32' },
  ),
  ADMIN_API_ORIGINS: setting(
    text('origins like https://admin.example, separated by commas', ''),
    'Origins of web apps that may use `/api/admin/v1` with their own tokens, like `https://admin.example,https://other.example`',
    { example: 'https://admin.example' },
  ),
  SPAM_CLUSTER_ITEMS: setting(
    number(2, 10_000, 5),
    'At least this number of matching posts or comments (same text, link, photo or set of mentions) within an hour, by `SPAM_CLUSTER_AUTHORS` authors, open a case',
  ),
  SPAM_CLUSTER_AUTHORS: setting(
    number(2, 10_000, 3),
    'The number of authors (new, or all on one pod) that `SPAM_CLUSTER_ITEMS` needs',
  ),
  SPAM_AUTHOR_ITEMS: setting(
    number(2, 10_000, 10),
    'At least this number of matching posts or comments by one author within an hour, under the posts of `SPAM_AUTHOR_THREADS` people, open a case',
  ),
  SPAM_AUTHOR_THREADS: setting(
    number(2, 10_000, 5),
    'The number of people under whose posts `SPAM_AUTHOR_ITEMS` counts',
  ),
  SPAM_CONVERSATIONS: setting(
    number(2, 10_000, 20),
    'Maximum new conversations of one person per hour with non-followers; beyond it a case is opened',
  ),
  SPAM_AUTO_HIDE: setting(onOff('off'), '`on`: new content of an open spam cluster is hidden within a minute'),
} as const
