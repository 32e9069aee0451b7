import { readFile } from 'node:fs/promises'
import { createTransport } from 'nodemailer'
import type { MailSettings } from '../../../config/mail-settings.js'
import { smtpOptions } from './smtp-options.js'

/** A mail as it is sent. */
export interface MailMessage {
  readonly messageId: string
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html: string
  /** The name of the pod. */
  readonly fromName: string
  /** The tagged address for status notifications; undefined: the sender. */
  readonly bounceTo: string | undefined
  /** The thread, as a Message-ID. */
  readonly inReplyTo: string | undefined
  readonly unsubscribeUrl: string | undefined
}

/** Sends a mail, over a connection of its own. Throws the error of the library, see `faultOf`. */
export async function sendMessage(mail: MailSettings, host: string, message: MailMessage): Promise<void> {
  const { messageId, to, subject, text, html, inReplyTo, unsubscribeUrl } = message
  const hostName = host.replace(/:[0-9]+$/, '')
  const transport = createTransport({
    ...smtpOptions(mail, hostName),
    ...(mail.dkim && {
      dkim: {
        domainName: mail.dkim.domain,
        keySelector: mail.dkim.selector,
        privateKey: await readFile(mail.dkim.keyFile, 'utf8'),
        // The recipient's provider obeys the one-click headers only if they are signed.
        headerFieldNames:
          'from:reply-to:date:to:subject:message-id:in-reply-to:references:mime-version:content-type:auto-submitted:list-unsubscribe:list-unsubscribe-post',
      },
    }),
  })
  try {
    await transport.sendMail({
      from: { name: message.fromName, address: mail.from },
      // The recipient is an object, so that no part of an address is read as another address.
      to: { name: '', address: to },
      ...(mail.replyTo !== undefined && { replyTo: mail.replyTo }),
      envelope: { from: message.bounceTo ?? mail.from, to },
      messageId,
      subject,
      text,
      html,
      ...(inReplyTo !== undefined && { inReplyTo, references: inReplyTo }),
      headers: {
        'Auto-Submitted': 'auto-generated',
        ...(unsubscribeUrl !== undefined && {
          // Prepared: a folded header breaks DKIM at some relays.
          'List-Unsubscribe': { prepared: true, value: `<${unsubscribeUrl}>` },
          'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
        }),
      },
    })
  } finally {
    transport.close()
  }
}
