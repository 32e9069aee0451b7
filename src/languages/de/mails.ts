export const MAILS = {
  'mail.confirm_sign_up.subject': 'Bestätige deine E-Mail-Adresse für {pod}',
  'mail.confirm_sign_up.text':
    'Jemand, wahrscheinlich du, möchte mit dieser E-Mail-Adresse das Konto {account} auf {pod} eröffnen.\n\nUm die Adresse zu bestätigen, öffne innerhalb von 3 Tagen diese Seite und drück ihren Knopf. Wenn du das nicht warst, musst du nichts tun.',
  'mail.confirm_sign_up.action': 'Adresse bestätigen',
  'mail.already_registered.subject': 'Du hast schon ein Konto auf {pod}',
  'mail.already_registered.text':
    'Jemand, wahrscheinlich du, wollte mit dieser E-Mail-Adresse ein Konto auf {pod} eröffnen. Es gibt schon ein Konto mit ihr: Melde dich mit dessen Namen oder mit dieser Adresse an.\n\nWenn du das nicht warst, musst du nichts tun.',
  'mail.sign_up_approved.subject': 'Dein Konto auf {pod} ist eröffnet',
  'mail.sign_up_approved.text': 'Das Konto {account} ist eröffnet. Du kannst dich jetzt anmelden.',
  'mail.sign_up_rejected.subject': 'Deine Registrierung auf {pod}',
  'mail.sign_up_rejected.text':
    'Die Moderation von {pod} hat deine Registrierung nicht angenommen. Deine Daten wurden gelöscht.',
  'mail.password_reset.subject': 'Setz dein Passwort für {pod} zurück',
  'mail.password_reset.text':
    'Für {account} wurde ein neues Passwort angefordert, wahrscheinlich von dir.\n\nUm eines zu setzen, öffne innerhalb von 2 Stunden diese Seite. Wenn du das nicht warst, musst du nichts tun.',
  'mail.password_reset.action': 'Neues Passwort setzen',
  'mail.password_changed.subject': 'Das Passwort deines Kontos auf {pod} wurde geändert',
  'mail.password_changed.text':
    'Das Passwort von {account} wurde geändert.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.confirm_email.subject': 'Bestätige deine neue E-Mail-Adresse für {pod}',
  'mail.confirm_email.text':
    'Das wird die E-Mail-Adresse von {account} auf {pod}.\n\nUm sie zu bestätigen, öffne innerhalb eines Tages diese Seite und drück ihren Knopf. Wenn du das nicht warst, musst du nichts tun.',
  'mail.confirm_email.action': 'Adresse bestätigen',
  'mail.email_changing.subject': 'Die E-Mail-Adresse deines Kontos auf {pod} wird geändert',
  'mail.email_changing.text':
    'Die E-Mail-Adresse von {account} wird von dieser in {address} geändert.\n\nWenn du das nicht warst, öffne innerhalb von 3 Tagen diese Seite: Diese Adresse wird wiederhergestellt, alle Sitzungen enden, und du setzt ein neues Passwort.',
  'mail.email_changing.action': 'Änderung rückgängig machen',
  'mail.new_sign_in.subject': 'Neue Anmeldung auf {pod}',
  'mail.new_sign_in.text':
    'Jemand hat sich als {account} mit einem Browser angemeldet, der bisher nicht benutzt wurde.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.second_factor_on.subject': 'Der zweite Faktor für {pod} ist an',
  'mail.second_factor_on.text':
    'Wer sich als {account} anmeldet, braucht ab jetzt einen Code.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.second_factor_off.subject': 'Der zweite Faktor für {pod} ist aus',
  'mail.second_factor_off.text':
    'Wer sich als {account} anmeldet, braucht keinen Code mehr.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.recovery_codes_new.subject': 'Neue Wiederherstellungscodes für {pod}',
  'mail.recovery_codes_new.text':
    'Für {account} wurden neue Wiederherstellungscodes erzeugt. Die alten gelten nicht mehr.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.recovery_code_used.subject': 'Auf {pod} wurde ein Wiederherstellungscode benutzt',
  'mail.recovery_code_used.text':
    'Mit einem Wiederherstellungscode hat sich jemand als {account} angemeldet. Verbleibende Wiederherstellungscodes: {count, number}.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.passkey_added.subject': 'Auf {pod} wurde ein Passkey hinzugefügt',
  'mail.passkey_added.text':
    'Mit einem weiteren Passkey kann man sich jetzt als {account} anmelden.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.passkey_removed.subject': 'Auf {pod} wurde ein Passkey entfernt',
  'mail.passkey_removed.text':
    'Ein Passkey von {account} wurde entfernt.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.passkey_refused.subject': 'Auf {pod} wurde ein Passkey abgelehnt',
  'mail.passkey_refused.text':
    'Ein Passkey von {account} wurde abgelehnt, weil er kopiert worden sein kann. Entferne ihn in den Einstellungen.',
  'mail.sign_ups_unattended.subject': 'Neue Konten auf {pod} brauchen jetzt eine Entscheidung',
  'mail.sign_ups_unattended.text':
    'Einige Zeit war niemand von der Moderation von {pod} aktiv. Ab jetzt wartet jedes neue Konto ohne Einladung auf eine Entscheidung, bis ein Admin das beendet.',
  'mail.sign_ups_unattended.action': 'Wartende Konten öffnen',
  'mail.moderation_notice.subject': 'Eine Mitteilung der Moderation von {pod}',
  'mail.moderation_notice.text':
    'Die Moderation von {pod} hat eine Mitteilung für {account}. Melde dich an, um sie zu lesen.',
  'mail.moderation_notice.action': 'Mitteilung lesen',

  'mail.account_closing.subject': 'Dein Konto auf {pod} wird geschlossen',
  'mail.account_closing.text':
    'Das Konto {account} wird am {day} endgültig geschlossen. Bis dahin wird nichts gelöscht: Um das Konto zu behalten, melde dich an.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.account_closing.action': 'Konto behalten',
  'mail.account_unused.subject': 'Dein Konto auf {pod} wird bald geschlossen',
  'mail.account_unused.text':
    'Das Konto {account} wurde lange nicht benutzt. Wird es bis zum {day} nicht benutzt, wird es geschlossen.\n\nMelde dich an oder benutze eine App, um es zu behalten.',
  'mail.account_unused.action': 'Anmelden',
  'mail.account_unused_closing.subject': 'Dein Konto auf {pod} wird geschlossen',
  'mail.account_unused_closing.text':
    'Das Konto {account} wurde lange nicht benutzt und wird deshalb am {day} endgültig geschlossen. Bis dahin wird nichts gelöscht.\n\nUm das Konto zu behalten, melde dich vorher an.',
  'mail.account_unused_closing.action': 'Konto behalten',
  'mail.account_moved.subject': 'Dein Konto auf {pod} ist umgezogen',
  'mail.account_moved.text':
    'Das Konto {account} ist mit Beiträgen, Kontakten und Nachrichten zu {address} umgezogen. Hier ist es nicht mehr nutzbar.\n\nWenn du das nicht warst, hat jemand einen Export deines Kontos. Frag die Betreiber des Pods und sag deinen Kontakten Bescheid: Ein Umzug lässt sich nicht rückgängig machen.',
  'mail.archive_ready.subject': 'Dein Export von {pod} ist fertig',
  'mail.archive_ready.text':
    'Der Export von {account} ist fertig. Er wird 14 Tage aufbewahrt.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.archive_ready.action': 'Herunterladen',
  'mail.archive_downloaded.subject': 'Ein Export deines Kontos auf {pod} wurde heruntergeladen',
  'mail.archive_downloaded.text':
    'Ein Export von {account} wurde heruntergeladen. Wer die Datei hat, kann lesen, was darin steht.\n\nWenn du das nicht warst, setz dein Passwort zurück und beende in den Einstellungen alle Sitzungen, oder frag die Betreiber des Pods.',
  'mail.notice.mentioned':
    '{others, plural, =0 {{name} hat dich in einem Beitrag erwähnt} one {{name} und eine weitere Person haben dich in einem Beitrag erwähnt} other {{name} und # weitere Personen haben dich in einem Beitrag erwähnt}}',
  'mail.notice.mentioned_in_comment':
    '{others, plural, =0 {{name} hat dich in einem Kommentar erwähnt} one {{name} und eine weitere Person haben dich in einem Kommentar erwähnt} other {{name} und # weitere Personen haben dich in einem Kommentar erwähnt}}',
  'mail.notice.started_sharing':
    '{others, plural, =0 {{name} teilt jetzt mit dir} one {{name} und eine weitere Person teilen jetzt mit dir} other {{name} und # weitere Personen teilen jetzt mit dir}}',
  'mail.notice.private_message':
    '{others, plural, =0 {{name} hat dir eine Nachricht geschickt} one {{name} und eine weitere Person haben dir eine Nachricht geschickt} other {{name} und # weitere Personen haben dir eine Nachricht geschickt}}',
  'mail.notice.comment_on_post':
    '{others, plural, =0 {{name} hat deinen Beitrag kommentiert} one {{name} und eine weitere Person haben deinen Beitrag kommentiert} other {{name} und # weitere Personen haben deinen Beitrag kommentiert}}',
  'mail.notice.also_commented':
    '{others, plural, =0 {{name} hat einen Beitrag kommentiert, den du kommentiert hast} one {{name} und eine weitere Person haben einen Beitrag kommentiert, den du kommentiert hast} other {{name} und # weitere Personen haben einen Beitrag kommentiert, den du kommentiert hast}}',
  'mail.notice.liked':
    '{others, plural, =0 {{name} gefällt dein Beitrag} one {{name} und einer weiteren Person gefällt dein Beitrag} other {{name} und # weiteren Personen gefällt dein Beitrag}}',
  'mail.notice.liked_comment':
    '{others, plural, =0 {{name} gefällt dein Kommentar} one {{name} und einer weiteren Person gefällt dein Kommentar} other {{name} und # weiteren Personen gefällt dein Kommentar}}',
  'mail.notice.reshared':
    '{others, plural, =0 {{name} hat deinen Beitrag weitergesagt} one {{name} und eine weitere Person haben deinen Beitrag weitergesagt} other {{name} und # weitere Personen haben deinen Beitrag weitergesagt}}',
  'mail.notice.contacts_birthday':
    '{others, plural, =0 {{name} hat Geburtstag} one {{name} und eine weitere Person haben Geburtstag} other {{name} und # weitere Personen haben Geburtstag}}',
  'mail.notice.sentence': '{sentence}.',
  'mail.notice.action': 'Öffnen',

  'mail.someone_reported.subject':
    '{count, plural, one {Eine neue Meldung auf {pod}} other {# neue Meldungen auf {pod}}}',
  'mail.someone_reported.text':
    '{count, plural, one {Eine neue Meldung wartet auf die Moderation.} other {# neue Meldungen warten auf die Moderation.}}',
  'mail.someone_reported.action': 'Meldungen öffnen',
  'mail.reported.post': 'Beiträge: {count}',
  'mail.reported.comment': 'Kommentare: {count}',
  'mail.reported.person': 'Personen: {count}',
  'mail.reported.message': 'Nachrichten: {count}',
  'mail.reported.cluster': 'Gruppen von Spam: {count}',
  'mail.sign_up_waiting.subject':
    '{count, plural, one {Auf {pod} wartet eine Registrierung} other {Auf {pod} warten # Registrierungen}}',
  'mail.sign_up_waiting.text':
    '{count, plural, one {Eine Registrierung wartet auf eine Entscheidung.} other {# Registrierungen warten auf eine Entscheidung.}}',
  'mail.sign_up_waiting.action': 'Registrierungen öffnen',

  'mail.digest.subject':
    '{count, plural, one {Eine neue Benachrichtigung auf {pod}} other {# neue Benachrichtigungen auf {pod}}}',
  'mail.digest.text': 'Was du seit der letzten Zusammenfassung nicht gelesen hast:',
  'mail.digest.more': '{count, plural, one {# weitere} other {# weitere}}',
  'mail.digest.action': 'Benachrichtigungen öffnen',
  'mail.account_footer': '{pod} sendet diese E-Mail, weil sie ein Konto mit dieser E-Mail-Adresse betrifft.',
  'mail.notice_footer':
    '{pod} sendet diese E-Mail, weil du Benachrichtigungs-Mails dieser Art nicht abgeschaltet hast.',
  'mail.unsubscribe': 'Diese E-Mails beenden',
} as const
