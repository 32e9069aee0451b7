import { number, setting, text } from '../schemas.js'

export const MAIL_VARIABLES = {
  SMTP_URL: setting(
    text('an address like smtp://user:password@mail.example:587'),
    'The mail server, like `smtp://user:password@mail.example:587` or `smtps://…`. Without it the pod sends no mail. TLS with a valid certificate is required, except on this machine or with `?ignoreTLS=true`',
    { example: 'smtp://user:password@mail.example:587' },
  ),
  MAIL_FROM: setting(text('an e-mail address'), 'The sender address of mails. `SMTP_URL` needs it', {
    example: 'pod@pod.example',
  }),
  MAIL_REPLY_TO: setting(text('an e-mail address'), 'The address for replies', { example: 'podmin@pod.example' }),
  MAIL_BOUNCE_ADDRESS: setting(
    text('an e-mail address'),
    'The envelope sender. The pod adds a tag for the user to it (`bounce+7.…@pod.example`); pipe the status notifications sent there into `pod mail bounce`',
    { example: 'bounce@pod.example' },
  ),
  MAIL_LIMIT: setting(number(1, 100_000, 60), 'Maximum mails per minute'),
  DKIM_DOMAIN: setting(
    text('a domain'),
    'The domain with which the pod signs mails, if the mail server does not. Set all three DKIM settings or none',
    { example: 'pod.example' },
  ),
  DKIM_SELECTOR: setting(text('the name of a DKIM selector'), 'The DKIM selector in `DKIM_DOMAIN`', { example: 'pod' }),
  DKIM_KEY_FILE: setting(
    text('the path of a private key in PEM format'),
    'A file with the private key in PEM format with which mails are signed',
    { example: '/etc/pod/dkim.pem' },
  ),
} as const
